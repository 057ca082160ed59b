#include <bit>
#include <optional>

#include "numsim/arith/arith.h"
#include "numsim/arith/internal/deliver.h"
#include "numsim/base/error.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

// A format whose subnormals are the integers below 2^23: encoding a value in it rounds the value to
// an integer.
constexpr FormatSpec kIntegers = {.exponent_bits = 2, .mantissa_bits = 23, .bias = -22};
static_assert(kIntegers.SubnormalExponent() == 0);

// Returns the integer as an Unrounded, whose significand must be below 2^63: a larger magnitude
// loses one bit and is rounded to odd.
Unrounded FromMagnitude(bool negative, uint64_t magnitude) {
  if ((magnitude >> 63) == 0) return {NumberKind::kFinite, negative, 0, magnitude};
  return {NumberKind::kFinite, negative, 1, (magnitude >> 1) | (magnitude & 1)};
}

struct Integral {
  Unrounded value;  // keeps the sign, also of zero
  Flags flags = 0;  // kInexact
};

// Rounds a number to an integral value. Infinities and NaN stay as they are. A number with
// exponent >= 0 is an integer; other numbers are below 2^23.
Integral ToIntegral(const Unrounded& x, const Rounding& rounding, uint32_t random) {
  if (x.kind != NumberKind::kFinite || x.exponent >= 0) return {x, 0};
  const EncodePlan plan = MakeEncodePlan(kIntegers, rounding);
  const Rounded r = EncodeUnrounded(plan, x, random);
  return {ExactValue(kIntegers, r.code), static_cast<Flags>(r.flags & kInexact)};
}

// Returns the magnitude of an integral value, which has exponent >= 0 if it is finite. Empty if the
// magnitude needs more than 64 bits.
std::optional<uint64_t> Magnitude(const Unrounded& x) {
  if (x.kind == NumberKind::kInfinity) return std::nullopt;
  if (x.significand == 0) return 0;
  if (x.exponent + static_cast<int>(std::bit_width(x.significand)) > 64) return std::nullopt;
  return x.significand << x.exponent;
}

}  // namespace

Rounded FromInt64(int64_t value, const EncodePlan& to, uint32_t random) noexcept {
  const uint64_t bits = static_cast<uint64_t>(value);
  return EncodeUnrounded(to, FromMagnitude(value < 0, value < 0 ? 0 - bits : bits), random);
}

Rounded FromUint64(uint64_t value, const EncodePlan& to, uint32_t random) noexcept {
  return EncodeUnrounded(to, FromMagnitude(false, value), random);
}

RoundedInteger ToInteger(const Operand& a,
                         IntegerType type,
                         const Rounding& rounding,
                         uint32_t random,
                         InvalidInteger invalid) noexcept {
  NUMSIM_CHECK(type.bits >= 1 && type.bits <= 64, "an integer of {} bits", type.bits);
  const uint64_t mask = ~uint64_t{0} >> (64 - type.bits);
  const uint64_t highest = type.is_signed ? mask >> 1 : mask;
  const uint64_t lowest = type.is_signed ? highest + 1 : 0;  // its magnitude
  const bool is_x86 = invalid == InvalidInteger::kX86;
  const uint64_t x86 = type.is_signed ? lowest : highest;

  const Unrounded x = ExactValue(a.format, a.code);
  if (x.kind == NumberKind::kNan) {
    return {is_x86 ? x86 : invalid == InvalidInteger::kArm ? 0 : highest, kInvalid};
  }
  const uint64_t limit = x.negative ? lowest : highest;
  const Integral integral = ToIntegral(x, rounding, random);
  const std::optional<uint64_t> magnitude = Magnitude(integral.value);
  const bool in_range = magnitude.has_value() && *magnitude <= limit;
  if (!in_range && is_x86) return {x86, kInvalid};
  const uint64_t result = in_range ? *magnitude : limit;
  return {(x.negative ? 0 - result : result) & mask, in_range ? integral.flags : kInvalid};
}

Rounded RoundToIntegral(const Operand& a,
                        const Rounding& rounding,
                        const EncodePlan& to,
                        uint32_t random) noexcept {
  Integral integral = ToIntegral(ExactValue(a.format, a.code), rounding, random);
  if (integral.value.kind == NumberKind::kNan) integral.value.negative = false;
  return Deliver(integral.value, integral.flags | SignalingFlags(a), to, random);
}

}  // namespace numsim
