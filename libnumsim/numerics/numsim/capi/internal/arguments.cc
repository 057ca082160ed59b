#include "numsim/capi/internal/arguments.h"

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/value_table.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim::capi {
namespace {

bool AreEnumerators(const numsim_format_t& format) {
  return format.sign <= static_cast<uint8_t>(Sign::kTwosComplement) &&
         format.zero <= static_cast<uint8_t>(Zero::kNone) &&
         format.infinity <= static_cast<uint8_t>(Infinity::kTopCode) &&
         format.nan <= static_cast<uint8_t>(Nan::kNegativeZero) &&
         format.overflow_to <= static_cast<uint8_t>(OverflowTo::kMax) && format.full_range <= 1 &&
         format.flush_subnormals <= 1;
}

// Returns true if ParseFormat() can return such a format. ValidateFormat() also accepts formats
// that no text describes, such as a subnormal gap elsewhere than in bitsandbytes' maps. Of these, the
// library supports only the ones in its table. Requires a valid format.
bool IsOfKnownKind(const FormatSpec& spec) {
  const bool ordinary =
      spec.subnormal_shift == 0 && spec.sign != Sign::kTwosComplement && spec.zero != Zero::kNone;
  const auto is_spec = [&spec](const FormatEntry& entry) { return entry.spec == spec; };
  return ordinary || std::any_of(FormatTable().begin(), FormatTable().end(), is_spec) ||
         (spec.IsFixedPoint() && ParseFormatWithoutNote(ToString(spec)).spec == spec);
}

bool IsValid(const FormatSpec& spec) noexcept {
  try {
    ValidateFormat(spec, "");
    return IsOfKnownKind(spec);
  } catch (...) {
    return false;
  }
}

#define NUMSIM_ROUNDING_MODE(enumerator, value, c_name, ...) \
  static_assert(static_cast<int>(RoundingMode::enumerator) == NUMSIM_ROUND_##c_name);
#include "numsim/rounding/rounding_modes.inc"
#undef NUMSIM_ROUNDING_MODE
static_assert(static_cast<int>(StochasticVariant::kA) == NUMSIM_STOCHASTIC_A);
static_assert(static_cast<int>(StochasticVariant::kB) == NUMSIM_STOCHASTIC_B);
static_assert(static_cast<int>(StochasticVariant::kC) == NUMSIM_STOCHASTIC_C);
static_assert(static_cast<int>(Overflow::kNonsaturate) == NUMSIM_OVERFLOW_NONSATURATE);
static_assert(static_cast<int>(Overflow::kSaturate) == NUMSIM_OVERFLOW_SATURATE);
static_assert(static_cast<int>(Overflow::kPropagate) == NUMSIM_OVERFLOW_PROPAGATE);
static_assert(static_cast<int>(Tininess::kAfterRounding) == NUMSIM_TININESS_AFTER_ROUNDING);
static_assert(static_cast<int>(Tininess::kBeforeRounding) == NUMSIM_TININESS_BEFORE_ROUNDING);

// Bound on the bias that keeps the arithmetic of all fields far from overflow. ParseFormat() has
// the same bound.
constexpr int kMaxBias = 512;

}  // namespace

numsim_status_t ReadFormatOrTable(const numsim_format_t* format, FormatSpec* out) noexcept {
  if (format == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
  const bool reserved_clear = std::all_of(
      std::begin(format->reserved), std::end(format->reserved), [](uint8_t r) { return r == 0; });
  if (!reserved_clear || !AreEnumerators(*format)) return NUMSIM_ERROR_BAD_FORMAT;
  if (format->bias < -kMaxBias || format->bias > kMaxBias) return NUMSIM_ERROR_BAD_FORMAT;
  const FormatSpec spec = {.exponent_bits = format->exponent_bits,
                           .mantissa_bits = format->mantissa_bits,
                           .bias = format->bias,
                           .sign = static_cast<Sign>(format->sign),
                           .zero = static_cast<Zero>(format->zero),
                           .infinity = static_cast<Infinity>(format->infinity),
                           .nan = static_cast<Nan>(format->nan),
                           .overflow_to = static_cast<OverflowTo>(format->overflow_to),
                           .subnormal_shift = format->subnormal_shift,
                           .full_range = format->full_range != 0,
                           .flush_subnormals = format->flush_subnormals != 0,
                           .table = format->table};
  const bool valid = spec.IsTable() ? IsTableFormat(spec) : IsValid(spec);
  if (!valid) return NUMSIM_ERROR_BAD_FORMAT;
  *out = spec;
  return NUMSIM_OK;
}

numsim_status_t ReadFormat(const numsim_format_t* format, FormatSpec* out) noexcept {
  if (format != nullptr && format->table != 0) return NUMSIM_ERROR_BAD_FORMAT;
  return ReadFormatOrTable(format, out);
}

numsim_format_t ToC(const FormatSpec& spec) noexcept {
  return {.exponent_bits = spec.exponent_bits,
          .mantissa_bits = spec.mantissa_bits,
          .bias = spec.bias,
          .sign = static_cast<uint8_t>(spec.sign),
          .zero = static_cast<uint8_t>(spec.zero),
          .infinity = static_cast<uint8_t>(spec.infinity),
          .nan = static_cast<uint8_t>(spec.nan),
          .overflow_to = static_cast<uint8_t>(spec.overflow_to),
          .subnormal_shift = spec.subnormal_shift,
          .full_range = spec.full_range ? uint8_t{1} : uint8_t{0},
          .flush_subnormals = spec.flush_subnormals ? uint8_t{1} : uint8_t{0},
          .table = spec.table,
          .reserved = {}};
}

numsim_status_t ReadRounding(const numsim_rounding_t* rounding, Rounding* out) noexcept {
  if (rounding == nullptr) {
    *out = Rounding();
    return NUMSIM_OK;
  }
  const bool reserved_clear =
      rounding->reserved[0] == 0 && rounding->reserved[1] == 0 && rounding->reserved[2] == 0;
  if (!reserved_clear || !IsRoundingMode(rounding->mode)) return NUMSIM_ERROR_BAD_ROUNDING;
  if (rounding->mode != NUMSIM_ROUND_STOCHASTIC) {
    *out = Rounding{.mode = static_cast<RoundingMode>(rounding->mode)};
    return NUMSIM_OK;
  }
  if (rounding->variant < 0 || rounding->variant > NUMSIM_STOCHASTIC_C ||
      rounding->random_bits < 1 || rounding->random_bits > 32) {
    return NUMSIM_ERROR_BAD_ROUNDING;
  }
  *out = {RoundingMode::kStochastic,
          static_cast<StochasticVariant>(rounding->variant),
          rounding->random_bits};
  return NUMSIM_OK;
}

numsim_status_t ReadPlan(const numsim_format_t* to,
                         const numsim_rounding_t* rounding,
                         EncodePlan* out) noexcept {
  FormatSpec format;
  Rounding mode;
  const numsim_status_t status =
      FirstError({ReadFormatOrTable(to, &format), ReadRounding(rounding, &mode)});
  if (status != NUMSIM_OK) return status;
  const int overflow = rounding == nullptr ? 0 : rounding->overflow;
  const int tininess = rounding == nullptr ? 0 : rounding->tininess;
  if (overflow < 0 || overflow > NUMSIM_OVERFLOW_PROPAGATE || tininess < 0 ||
      tininess > NUMSIM_TININESS_BEFORE_ROUNDING) {
    return NUMSIM_ERROR_BAD_ROUNDING;
  }
  *out = MakeEncodePlan(format, mode, static_cast<Overflow>(overflow));
  out->tininess = static_cast<Tininess>(tininess);
  return NUMSIM_OK;
}

numsim_status_t ReadOperandOrTable(const numsim_format_t* format,
                                   uint32_t code,
                                   Operand* out) noexcept {
  FormatSpec spec;
  const numsim_status_t status = ReadFormatOrTable(format, &spec);
  if (status != NUMSIM_OK) return status;
  if (code > spec.CodeMask()) return NUMSIM_ERROR_BAD_CODE;
  *out = {spec, code};
  return NUMSIM_OK;
}

numsim_status_t ReadOperand(const numsim_format_t* format, uint32_t code, Operand* out) noexcept {
  if (format != nullptr && format->table != 0) return NUMSIM_ERROR_BAD_FORMAT;
  return ReadOperandOrTable(format, code, out);
}

}  // namespace numsim::capi
