#include "numsim/cast/shared/cast_shortcut.h"

#include "numsim/random/streams.h"
#include "numsim/rounding/shared/decode_range.h"

namespace numsim {
namespace {

constexpr int kMantissaBits = 23;
constexpr int kBias = 127;

EncodeShortcutKind KindOf(const EncodePlan& plan) {
  const Rounding& rounding = plan.rounding;
  const bool nearest = rounding.mode == RoundingMode::kNearestEven;
  const bool stochastic =
      rounding.mode == RoundingMode::kStochastic && rounding.variant == StochasticVariant::kA;
  const bool bounded = plan.overflow_ordinal[0] == plan.max_ordinal ||
                       plan.overflow_ordinal[0] == plan.max_ordinal + 1;
  if (!(nearest || stochastic) || !plan.uniform_specials || !bounded || plan.ordinal_offset != 0 ||
      !plan.format.HasPlainGrid() || plan.mantissa_bits < 1 || plan.mantissa_bits > 21) {
    return EncodeShortcutKind::kNone;
  }
  if (plan.range_f32 == ExponentRange::kSame) {
    return nearest ? EncodeShortcutKind::kNearestSame : EncodeShortcutKind::kStochasticSame;
  }
  if (plan.range_f32 != ExponentRange::kNarrower) return EncodeShortcutKind::kNone;
  // For numbers near infinity, c exceeds the exponents of float32. Their ordinals must still be
  // beyond the bound, and so must those of the largest exponents of c.
  const int smallest = plan.min_exponent + kBias + kMantissaBits - plan.mantissa_bits;
  const bool far = smallest < 200 && ((255 - smallest) << plan.mantissa_bits) >
                                         static_cast<int>(plan.max_ordinal) + 1;
  if (!far) return EncodeShortcutKind::kNone;
  return nearest ? EncodeShortcutKind::kNearestNarrower : EncodeShortcutKind::kStochasticNarrower;
}

// Returns the mask of R in every field of a random word: the top `bits` bits of each field of
// RandomFieldBits(bits) bits.
uint32_t RandomMask(int bits) {
  const int field = RandomFieldBits(bits);
  uint32_t mask = 0;
  for (int at = 32 - field; at >= 0; at -= field) {
    mask |= static_cast<uint32_t>(((uint64_t{1} << bits) - 1) << (field - bits)) << at;
  }
  return mask;
}

}  // namespace

EncodeShortcut MakeEncodeShortcut(const EncodePlan& plan) noexcept {
  EncodeShortcut s;
  s.kind = KindOf(plan);
  if (s.kind == EncodeShortcutKind::kNone) return s;
  const int m = plan.mantissa_bits;
  s.unsigned_zero = plan.unsigned_zero;
  s.cut = kMantissaBits - m;
  s.to_sign = 32 - plan.format.Bits();
  s.bound = static_cast<int32_t>(plan.overflow_ordinal[0]);
  s.sign_bit = plan.sign_bit;
  s.nan_code = plan.nan_code;
  s.nan_sign = plan.nan_sign;
  if (plan.rounding.mode == RoundingMode::kStochastic) {
    s.random_mask = RandomMask(plan.rounding.random_bits);
  }
  if (plan.range_f32 == ExponentRange::kSame) {
    s.up = (uint32_t{1} << (s.cut - 1)) - 1;
    return s;
  }
  const int smallest = plan.min_exponent + kBias + s.cut;
  s.up = static_cast<uint32_t>(s.cut) << kMantissaBits;
  s.smallest = static_cast<int32_t>(static_cast<uint32_t>(smallest) << kMantissaBits);
  s.rebase = -(smallest << m);
  s.rebase_away = s.rebase + 1;
  return s;
}

DecodeShortcut MakeDecodeShortcut(const FormatSpec& format) noexcept {
  DecodeShortcut s;
  const int m = format.mantissa_bits;
  const int scale = format.MinExponent() + kBias - 1;
  s.usable = DecodesInLanes(format) && format.HasPlainGrid() &&
             format.sign == Sign::kSignMagnitude && (format.MaxFiniteCode() >> m) < 255 &&
             scale >= 0 && scale <= 127;
  if (!s.usable) return s;
  s.has_specials = format.MaxFiniteCode() < format.MagnitudeMask();
  s.nan_is_negative_zero = format.nan == Nan::kNegativeZero;
  s.has_infinity = format.HasInfinity();
  s.to_top = 32 - format.Bits();
  s.down = 8 - format.exponent_bits;
  s.mask = 0x80000000u | (format.MagnitudeMask() << (kMantissaBits - m));
  s.max_placed = format.MaxFiniteCode() << (kMantissaBits - m);
  s.infinity_placed = s.has_infinity ? format.InfinityCode() << (kMantissaBits - m) : 0;
  s.nan_sign = format.NanHasSign() ? 0x80000000u : 0;
  s.scale = std::bit_cast<float>(static_cast<uint32_t>(scale + kBias) << kMantissaBits);
  return s;
}

}  // namespace numsim
