// Rounding and conversion of single numbers.
#include <bit>

#include "numsim/arith/arith.h"
#include "numsim/capi/internal/arguments.h"
#include "numsim/capi/internal/text.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/exact_number.h"
#include "numsim/rounding/shared/float64_bits.h"
#include "numsim/rounding/unrounded.h"

using numsim::EncodePlan;
using numsim::Operand;
using numsim::capi::FirstError;
using numsim::capi::ReadOperand;
using numsim::capi::ReadOperandOrTable;
using numsim::capi::ReadPlan;
using numsim::capi::Require;

namespace numsim::capi {
namespace {

// Encodes a number by round(plan), for the functions that take integers and text.
template <typename Round>
numsim_status_t EncodeBy(const Round& round,
                         const numsim_format_t* to,
                         const numsim_rounding_t* rounding,
                         uint32_t* code,
                         uint8_t* flags) noexcept {
  EncodePlan plan;
  const numsim_status_t status =
      FirstError({ReadPlan(to, rounding, &plan), Require(code != nullptr)});
  if (status != NUMSIM_OK) return status;
  const Rounded rounded = round(plan);
  *code = rounded.code;
  if (flags != nullptr) *flags = rounded.flags;
  return NUMSIM_OK;
}

// Returns the float64 bits of a code's value. Every product here is exact and normal, so the
// floating-point environment does not matter.
uint64_t F64Bits(const Unrounded& x) {
  const uint64_t sign = x.negative ? kFloat64Sign : 0;
  if (x.kind == NumberKind::kNan) return sign | kFloat64Infinity | kFloat64Quiet;
  if (x.kind == NumberKind::kInfinity) return sign | kFloat64Infinity;
  const auto scale = std::bit_cast<double>(static_cast<uint64_t>(x.exponent + 1023) << 52);
  return sign | std::bit_cast<uint64_t>(static_cast<double>(x.significand) * scale);
}

}  // namespace
}  // namespace numsim::capi

using numsim::EncodePlan;
using numsim::capi::EncodeBy;

numsim_rounding_t numsim_rounding_default(void) noexcept {
  return {.mode = NUMSIM_ROUND_NEAREST_EVEN,
          .variant = NUMSIM_STOCHASTIC_A,
          .random_bits = 32,
          .overflow = NUMSIM_OVERFLOW_NONSATURATE,
          .tininess = NUMSIM_TININESS_AFTER_ROUNDING,
          .reserved = {}};
}

// Takes the flags from Convert(), which gives the same codes as EncodeF32().
numsim_status_t numsim_encode_f32(uint32_t value_bits,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  EncodePlan plan;
  const numsim_status_t status =
      FirstError({ReadPlan(to, rounding, &plan), Require(code != nullptr)});
  if (status != NUMSIM_OK) return status;
  if (flags != nullptr) *flags = numsim::Convert({numsim::kFp32, value_bits}, plan, random).flags;
  *code = numsim::EncodeF32(plan, value_bits, random);
  return NUMSIM_OK;
}

numsim_status_t numsim_encode_f64(uint64_t value_bits,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  EncodePlan plan;
  const numsim_status_t status =
      FirstError({ReadPlan(to, rounding, &plan), Require(code != nullptr)});
  if (status != NUMSIM_OK) return status;
  if (flags != nullptr) *flags = numsim::EncodeFloat64(plan, value_bits, random).flags;
  *code = numsim::EncodeF64(plan, value_bits, random);
  return NUMSIM_OK;
}

numsim_status_t numsim_encode_i64(int64_t value,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  const auto round = [&](const EncodePlan& plan) { return numsim::FromInt64(value, plan, random); };
  return EncodeBy(round, to, rounding, code, flags);
}

numsim_status_t numsim_encode_u64(uint64_t value,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  const auto round = [&](const EncodePlan& plan) {
    return numsim::FromUint64(value, plan, random);
  };
  return EncodeBy(round, to, rounding, code, flags);
}

numsim_status_t numsim_encode_text(const char* text,
                                   const numsim_format_t* to,
                                   const numsim_rounding_t* rounding,
                                   uint32_t random,
                                   uint32_t* code,
                                   uint8_t* flags) noexcept {
  if (text == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
  return numsim::capi::CatchAll({nullptr, 0}, NUMSIM_ERROR_BAD_ARGUMENT, [&] {
    const numsim::Unrounded x = numsim::ParseExactSum(text, "text").Rounded();
    const auto round = [&](const EncodePlan& plan) { return EncodeUnrounded(plan, x, random); };
    return EncodeBy(round, to, rounding, code, flags);
  });
}

numsim_status_t numsim_decode_f32(const numsim_format_t* format,
                                  uint32_t code,
                                  uint32_t* value_bits) noexcept {
  Operand operand;
  const numsim_status_t status =
      FirstError({ReadOperandOrTable(format, code, &operand), Require(value_bits != nullptr)});
  if (status != NUMSIM_OK) return status;
  *value_bits = std::bit_cast<uint32_t>(numsim::Decode(operand.format, code));
  return NUMSIM_OK;
}

numsim_status_t numsim_decode_f64(const numsim_format_t* format,
                                  uint32_t code,
                                  uint64_t* value_bits) noexcept {
  Operand operand;
  const numsim_status_t status =
      FirstError({ReadOperandOrTable(format, code, &operand), Require(value_bits != nullptr)});
  if (status != NUMSIM_OK) return status;
  *value_bits = numsim::capi::F64Bits(numsim::ExactValue(operand.format, code));
  return NUMSIM_OK;
}

numsim_status_t numsim_random_bits(
    uint64_t seed, uint64_t stream, uint64_t index, int bits, uint32_t* random) noexcept {
  if (random == nullptr || bits < 1 || bits > 32) return NUMSIM_ERROR_BAD_ARGUMENT;
  *random = numsim::RandomBits({seed, stream}, index, bits);
  return NUMSIM_OK;
}
