// std::numeric_limits of SoftFloat. Included by soft_float.h.
#pragma once

#include <cstdint>
#include <limits>

#include "numsim/arith/soft_float.h"
#include "numsim/formats/format_spec.h"

namespace numsim::limits {

// Returns the code of 2^exponent, or 0 if the format cannot represent it.
constexpr uint32_t PowerOfTwoCode(const FormatSpec& format, int exponent) {
  if (exponent > format.MaxExponent()) return 0;
  if (exponent >= format.MinExponent()) {
    return static_cast<uint32_t>(exponent + format.bias) << format.mantissa_bits;
  }
  const int position = exponent - format.SubnormalExponent();
  if (position < 0 || position >= format.mantissa_bits) return 0;
  return uint32_t{1} << position;
}

// Returns true if the format has subnormal numbers.
constexpr bool HasSubnormals(const FormatSpec& format) {
  return format.mantissa_bits > 0 && format.zero != Zero::kNone;
}

// Returns the code of the smallest normal, or the smallest positive code if all numbers are
// subnormal.
constexpr uint32_t MinNormalCode(const FormatSpec& format) {
  if (format.zero == Zero::kNone) return 0;
  const uint32_t code = uint32_t{1} << format.mantissa_bits;
  return code <= format.MaxFiniteCode() ? code : 1;
}

// Returns the code of the lowest finite number: the most negative one, or the least of an unsigned format.
constexpr uint32_t LowestCode(const FormatSpec& format) {
  if (!format.IsSigned()) return 0;
  const uint32_t max = format.LastFiniteCode(true);
  if (format.sign == Sign::kTwosComplement) return (0u - max) & format.CodeMask();
  return format.SignBit() | max;
}

// Returns log2 of the spacing of the numbers just above 1.
constexpr int EpsilonExponent(const FormatSpec& format) {
  return format.MinExponent() <= 0 ? -format.mantissa_bits : format.SubnormalExponent();
}

// Returns 2^exponent.
constexpr double PowerOfTwo(int exponent) {
  double power = 1;
  for (; exponent > 0; --exponent) power *= 2;
  for (; exponent < 0; ++exponent) power /= 2;
  return power;
}

// Returns the value of a positive finite code, by the formulas of formats/format_spec.h.
constexpr double ValueOf(const FormatSpec& format, uint32_t code) {
  const uint32_t hidden = uint32_t{1} << format.mantissa_bits;
  const int field = static_cast<int>(code >> format.mantissa_bits);
  if (field == 0 && format.zero != Zero::kNone)
    return code * PowerOfTwo(format.SubnormalExponent());
  return (hidden + code % hidden) * PowerOfTwo(field - format.bias - format.mantissa_bits);
}

// Returns the greatest n with 10^n <= x, for x > 0.
constexpr int FloorLog10(double x) {
  int n = 0;
  for (double power = 10; power <= x; power *= 10) ++n;
  for (double power = 1; power * x < 1; power *= 10) --n;
  return n;
}

}  // namespace numsim::limits

// infinity(), quiet_NaN() and signaling_NaN() are meaningful only if has_... is true, epsilon() and
// round_error() only if the format can represent the number. Otherwise all of them are code 0.
template <numsim::FormatSpec kSpec>
struct std::numeric_limits<numsim::SoftFloat<kSpec>> {
 private:
  using Value = numsim::SoftFloat<kSpec>;
  static constexpr uint32_t kMinCode = numsim::limits::MinNormalCode(kSpec);
  static constexpr double kMin = numsim::limits::ValueOf(kSpec, kMinCode);
  static constexpr double kMax = numsim::limits::ValueOf(kSpec, kSpec.MaxFiniteCode());

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = kSpec.IsSigned();
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = kSpec.HasInfinity();
  static constexpr bool has_quiet_NaN = kSpec.HasNan();
  static constexpr bool has_signaling_NaN =
      kSpec.nan == numsim::Nan::kIeee && kSpec.mantissa_bits >= 2;
  static constexpr std::float_denorm_style has_denorm =
      numsim::limits::HasSubnormals(kSpec) ? std::denorm_present : std::denorm_absent;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = false;  // no flags, no other rounding modes
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr int radix = 2;
  static constexpr int digits = kSpec.mantissa_bits + 1;
  static constexpr int digits10 = kSpec.mantissa_bits * 30103 / 100000;
  static constexpr int max_digits10 = digits * 30103 / 100000 + 2;
  static constexpr int min_exponent = kSpec.MinExponent() + 1;
  static constexpr int max_exponent = kSpec.MaxExponent() + 1;
  static constexpr int max_exponent10 = numsim::limits::FloorLog10(kMax);
  // The least n with 10^n in the normal range.
  static constexpr int min_exponent10 = -numsim::limits::FloorLog10(1 / kMin);

  static constexpr Value min() noexcept { return Value::FromCode(kMinCode); }
  static constexpr Value max() noexcept { return Value::FromCode(kSpec.MaxFiniteCode()); }
  static constexpr Value lowest() noexcept {
    return Value::FromCode(numsim::limits::LowestCode(kSpec));
  }
  static constexpr Value epsilon() noexcept {
    return PowerOfTwo(numsim::limits::EpsilonExponent(kSpec));
  }
  static constexpr Value round_error() noexcept { return PowerOfTwo(-1); }
  static constexpr Value denorm_min() noexcept {
    return Value::FromCode(kSpec.zero == numsim::Zero::kNone ? 0 : 1);
  }
  static constexpr Value infinity() noexcept {
    return Value::FromCode(has_infinity ? kSpec.InfinityCode() : 0);
  }
  static constexpr Value quiet_NaN() noexcept { return Value::FromCode(kSpec.NanCode()); }
  static constexpr Value signaling_NaN() noexcept {
    return Value::FromCode(has_signaling_NaN ? kSpec.InfinityCode() + 1 : 0);
  }

 private:
  static constexpr Value PowerOfTwo(int exponent) noexcept {
    return Value::FromCode(numsim::limits::PowerOfTwoCode(kSpec, exponent));
  }
};
