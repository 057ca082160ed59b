// Rounding and conversion of single numbers.
#include <bit>

#include "numsim/capi/internal/arguments.h"
#include "numsim/capi/internal/text.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/exact_number.h"
#include "numsim/rounding/unrounded.h"

using numsim::EncodePlan;
using numsim::Operand;
using numsim::capi::FirstError;
using numsim::capi::ReadOperand;
using numsim::capi::ReadPlan;
using numsim::capi::Require;

namespace numsim::capi {
namespace {

constexpr uint64_t kSignF64 = uint64_t{1} << 63;
constexpr uint64_t kInfinityF64 = uint64_t{0x7FF} << 52;
constexpr uint64_t kQuietF64 = uint64_t{1} << 51;

// Returns the exact value of a float64 bit pattern.
Unrounded ExactF64(uint64_t bits) {
  Unrounded x;
  x.negative = (bits & kSignF64) != 0;
  const uint64_t magnitude = bits & ~kSignF64;
  if (magnitude >= kInfinityF64) {
    x.kind = magnitude > kInfinityF64 ? NumberKind::kNan : NumberKind::kInfinity;
    return x;
  }
  const int field = static_cast<int>(magnitude >> 52);
  const uint64_t mantissa = magnitude & ((uint64_t{1} << 52) - 1);
  x.significand = field == 0 ? mantissa : mantissa | (uint64_t{1} << 52);
  x.exponent = (field == 0 ? 1 : field) - 1075;
  return x;
}

bool IsSignalingF64(uint64_t bits) {
  return (bits & ~kSignF64) > kInfinityF64 && (bits & kQuietF64) == 0;
}

// Returns the integer, rounded to odd if it needs 64 bits.
Unrounded ExactInteger(bool negative, uint64_t magnitude) {
  Unrounded x;
  x.negative = negative;
  x.exponent = magnitude >> 63 != 0 ? 1 : 0;
  x.significand = x.exponent != 0 ? (magnitude >> 1) | (magnitude & 1) : magnitude;
  return x;
}

// Rounds a number for the functions that encode integers and text.
numsim_status_t EncodeExact(const Unrounded& x,
                            const numsim_format_t* to,
                            const numsim_rounding_t* rounding,
                            uint32_t random,
                            uint32_t* code,
                            uint8_t* flags) noexcept {
  EncodePlan plan;
  const numsim_status_t status =
      FirstError({ReadPlan(to, rounding, &plan), Require(code != nullptr)});
  if (status != NUMSIM_OK) return status;
  const Rounded rounded = EncodeUnrounded(plan, x, random);
  *code = rounded.code;
  if (flags != nullptr) *flags = rounded.flags;
  return NUMSIM_OK;
}

// Returns the float64 bits of a code's value. Every product here is exact and normal, so the
// floating-point environment does not matter.
uint64_t F64Bits(const Unrounded& x) {
  const uint64_t sign = x.negative ? kSignF64 : 0;
  if (x.kind == NumberKind::kNan) return sign | kInfinityF64 | kQuietF64;
  if (x.kind == NumberKind::kInfinity) return sign | kInfinityF64;
  const auto scale = std::bit_cast<double>(static_cast<uint64_t>(x.exponent + 1023) << 52);
  return sign | std::bit_cast<uint64_t>(static_cast<double>(x.significand) * scale);
}

}  // namespace
}  // namespace numsim::capi

using numsim::capi::EncodeExact;
using numsim::capi::ExactInteger;

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
  if (flags != nullptr) {
    *flags = numsim::EncodeUnrounded(plan, numsim::capi::ExactF64(value_bits), random).flags;
    if (numsim::capi::IsSignalingF64(value_bits)) *flags |= numsim::kInvalid;
  }
  *code = numsim::EncodeF64(plan, value_bits, random);
  return NUMSIM_OK;
}

numsim_status_t numsim_encode_i64(int64_t value,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  const auto bits = static_cast<uint64_t>(value);
  return EncodeExact(
      ExactInteger(value < 0, value < 0 ? 0 - bits : bits), to, rounding, random, code, flags);
}

numsim_status_t numsim_encode_u64(uint64_t value,
                                  const numsim_format_t* to,
                                  const numsim_rounding_t* rounding,
                                  uint32_t random,
                                  uint32_t* code,
                                  uint8_t* flags) noexcept {
  return EncodeExact(ExactInteger(false, value), to, rounding, random, code, flags);
}

numsim_status_t numsim_encode_text(const char* text,
                                   const numsim_format_t* to,
                                   const numsim_rounding_t* rounding,
                                   uint32_t random,
                                   uint32_t* code,
                                   uint8_t* flags) noexcept {
  if (text == nullptr) return NUMSIM_ERROR_BAD_ARGUMENT;
  return numsim::capi::CatchAll({nullptr, 0}, NUMSIM_ERROR_BAD_ARGUMENT, [&] {
    const numsim::ExactNumber number = numsim::ParseExactSum(text, "text");
    return EncodeExact(number.Rounded(), to, rounding, random, code, flags);
  });
}

numsim_status_t numsim_decode_f32(const numsim_format_t* format,
                                  uint32_t code,
                                  uint32_t* value_bits) noexcept {
  Operand operand;
  const numsim_status_t status =
      FirstError({ReadOperand(format, code, &operand), Require(value_bits != nullptr)});
  if (status != NUMSIM_OK) return status;
  *value_bits = std::bit_cast<uint32_t>(numsim::Decode(operand.format, code));
  return NUMSIM_OK;
}

numsim_status_t numsim_decode_f64(const numsim_format_t* format,
                                  uint32_t code,
                                  uint64_t* value_bits) noexcept {
  Operand operand;
  const numsim_status_t status =
      FirstError({ReadOperand(format, code, &operand), Require(value_bits != nullptr)});
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
