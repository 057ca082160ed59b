#include "numsim/rounding/unrounded.h"

#include <bit>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/shared/lanes_scalar.h"
#include "numsim/rounding/shared/table_rule.h"

namespace numsim {
namespace {

using scalar::Uint128;
using scalar::WideLanes;

constexpr int kMaxExponent = 1 << 20;

// Returns the bits of the number in the source format of WideLanes.
Uint128 WideBits(const Unrounded& x) {
  const Uint128 sign = Uint128{x.negative} << (WideLanes::kWordBits - 1);
  if (x.kind == NumberKind::kInfinity) return sign | WideLanes::kInfinityBits;
  if (x.kind == NumberKind::kNan) return sign | WideLanes::kInfinityBits | 1;
  if (x.significand == 0) return sign;
  const int top = std::bit_width(x.significand) - 1;
  const uint64_t hidden = uint64_t{1} << WideLanes::kMantissaBits;
  const uint64_t mantissa = (x.significand << (WideLanes::kMantissaBits - top)) - hidden;
  const Uint128 field = static_cast<Uint128>(x.exponent + top + WideLanes::kBias);
  return sign | (field << WideLanes::kMantissaBits) | mantissa;
}

template <RuleMode kMode>
Rounded EncodeWide(const EncodePlan& plan, Uint128 bits, Uint128 random) {
  const auto r = scalar::EncodeWordWithFlags<kMode>(WideLanes(), plan, bits, random);
  return {static_cast<uint32_t>(r.code), static_cast<Flags>(r.flags)};
}

// Returns the float64 bits of x rounded to odd: exact for at most 53 significant bits.
uint64_t OddF64Bits(const Unrounded& x) {
  const uint64_t sign = uint64_t{x.negative} << 63;
  if (x.kind == NumberKind::kInfinity) return sign | 0x7FF0000000000000u;
  if (x.kind == NumberKind::kNan) return sign | 0x7FF8000000000000u;
  if (x.significand == 0) return sign;
  const int top = std::bit_width(x.significand) - 1;
  const uint64_t wide = x.significand << (63 - top);
  const uint64_t odd = (wide >> 11) | ((wide & 0x7FF) != 0 ? 1 : 0);
  const int field = x.exponent + top + 1023;
  // Far outside the range of any format: returns the end of float64's range, with the lowest bit
  // set to mark it as inexact.
  if (field <= 0) return sign | (uint64_t{1} << 52) | 1;
  if (field >= 2047) return sign | 0x7FEFFFFFFFFFFFFFu;
  return sign | (static_cast<uint64_t>(field) << 52) | (odd & ~(uint64_t{1} << 52));
}

bool Equals(const FormatSpec& format, uint32_t code, const Unrounded& x) {
  const Unrounded y = ExactValue(format, code);
  if (y.kind != x.kind) return false;
  if (x.significand == 0 || y.significand == 0) return x.significand == y.significand;
  const int x_low = std::countr_zero(x.significand), y_low = std::countr_zero(y.significand);
  return x.negative == y.negative && x.exponent + x_low == y.exponent + y_low &&
         x.significand >> x_low == y.significand >> y_low;
}

// Returns true if the finite x is tiny in a format with a subnormal gap. The normals of such a
// format are like those of any other.
bool IsTinyAboveSubnormalGap(const EncodePlan& plan, const Unrounded& x, uint32_t random) {
  if (x.significand == 0) return false;
  const int exponent = x.exponent + static_cast<int>(std::bit_width(x.significand)) - 1;
  if (exponent >= plan.format.MinExponent()) return false;
  if (plan.tininess == Tininess::kBeforeRounding) return true;
  FormatSpec wider = plan.format;  // one more binade of normals
  wider.subnormal_shift = 0;
  ++wider.bias;
  const uint32_t first_normal = uint32_t{2} << wider.mantissa_bits;
  const EncodePlan unbounded = MakeEncodePlan(wider, plan.rounding, plan.overflow);
  return (EncodeUnrounded(unbounded, x, random).code & ~wider.SignBit()) < first_normal;
}

// Rounds x to a format with a subnormal gap and derives the flags from the result. Such formats
// have neither infinity nor NaN.
Rounded EncodeIntoSubnormalGap(const EncodePlan& plan, const Unrounded& x, uint32_t random) {
  const uint32_t code = EncodeF64(plan, OddF64Bits(x), random);
  if (x.kind == NumberKind::kInfinity) return {code, plan.infinity_flags[x.negative]};
  if (x.kind == NumberKind::kNan) return {code, plan.nan_flags};
  if (Equals(plan.format, code, x)) return {code, 0};
  FormatSpec without_subnormal_gap = plan.format;
  without_subnormal_gap.subnormal_shift = 0;
  const EncodePlan top = MakeEncodePlan(without_subnormal_gap, plan.rounding, plan.overflow);
  const Flags overflow = EncodeUnrounded(top, x, random).flags & kOverflow;
  const bool tiny = IsTinyAboveSubnormalGap(plan, x, random);
  return {code, static_cast<Flags>(kInexact | overflow | (tiny ? kUnderflow : 0))};
}

}  // namespace

Unrounded ExactValue(const FormatSpec& format, uint32_t code) noexcept {
  NUMSIM_CHECK(code <= format.CodeMask(), "code {:#x} of a {}-bit format", code, format.Bits());
  if (format.IsTable()) return ExactValue(kFp32, std::bit_cast<uint32_t>(Decode(format, code)));
  Unrounded x;
  x.negative = (code & format.SignBit()) != 0;
  uint32_t magnitude = code & ~format.SignBit();
  switch (Classify(format, code)) {
    case ValueClass::kNan:
      x.kind = NumberKind::kNan;
      x.negative = x.negative && format.NanHasSign();
      return x;
    case ValueClass::kInfinity:
      x.kind = NumberKind::kInfinity;
      return x;
    case ValueClass::kUnused:
      x.significand = code;
      x.exponent = format.SubnormalExponent();
      return x;
    default:
      break;
  }
  if (format.sign == Sign::kTwosComplement && x.negative) {
    magnitude = (0u - code) & format.CodeMask();
  }
  const Dyadic value = MagnitudeValue(format, magnitude);
  x.significand = value.significand;
  x.exponent = value.exponent;
  return x;
}

Rounded EncodeUnrounded(const EncodePlan& plan, const Unrounded& x, uint32_t random) noexcept {
  NUMSIM_CHECK(x.exponent > -kMaxExponent && x.exponent < kMaxExponent && x.significand >> 63 == 0,
               "{} * 2^{}",
               x.significand,
               x.exponent);
  if (plan.format.IsTable()) return table_rule::EncodeUnrounded(plan, x, random);
  if (plan.format.subnormal_shift != 0) return EncodeIntoSubnormalGap(plan, x, random);
  const Uint128 bits = WideBits(x);
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return EncodeWide<RuleMode::kNearestEven>(plan, bits, 0);
    case RuleMode::kStochastic:
      return EncodeWide<RuleMode::kStochastic>(
          plan, bits, Uint128{random} << (WideLanes::kWordBits - plan.rounding.random_bits));
    case RuleMode::kOther:
      break;
  }
  return EncodeWide<RuleMode::kOther>(plan, bits, 0);
}

}  // namespace numsim
