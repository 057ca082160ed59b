#include "numsim/rounding/encode_plan.h"

#include "numsim/base/require.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

// Returns true if a finite overflow of the given sign stays at the largest value because the mode
// never rounds numbers of that sign away from zero.
bool ModeKeepsOverflowFinite(RoundingMode mode, bool negative) {
  switch (mode) {
    case RoundingMode::kTowardZero:
    case RoundingMode::kToOdd:
      return true;
    case RoundingMode::kUp:
      return negative;
    case RoundingMode::kDown:
      return !negative;
    case RoundingMode::kNearestEven:
    case RoundingMode::kNearestAway:
    case RoundingMode::kStochastic:
      break;
  }
  return false;
}

// Returns the magnitude code of an overflow that the policy does not saturate.
uint32_t UnsaturatedCode(const FormatSpec& format, bool negative) {
  switch (format.overflow_to) {
    case OverflowTo::kInfinity:
      return format.InfinityCode();
    case OverflowTo::kNan:
      return format.NanCode();
    case OverflowTo::kMax:
      break;
  }
  return format.LastFiniteCode(negative);
}

uint32_t OverflowCode(const FormatSpec& format,
                      RoundingMode mode,
                      Overflow overflow,
                      bool negative) {
  const bool finite = overflow != Overflow::kNonsaturate || ModeKeepsOverflowFinite(mode, negative);
  return finite ? format.LastFiniteCode(negative) : UnsaturatedCode(format, negative);
}

uint32_t InfinityInputCode(const FormatSpec& format, Overflow overflow, bool negative) {
  if (overflow == Overflow::kSaturate) return format.LastFiniteCode(negative);
  return format.HasInfinity() ? format.InfinityCode() : UnsaturatedCode(format, negative);
}

// Returns the flags of an infinite result. It overflows if the code is not an infinity. Minus
// infinity is invalid in an unsigned format.
Flags InfinityFlags(const FormatSpec& format, Overflow overflow, bool negative) {
  if (negative && !format.IsSigned()) return kInvalid;
  const bool delivered = format.HasInfinity() && overflow != Overflow::kSaturate;
  return delivered ? 0 : kOverflow | kInexact;
}

// Returns true if a number far below the smallest positive value may round away from zero.
bool MovesTinyNumbers(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::kUp:
    case RoundingMode::kDown:
    case RoundingMode::kToOdd:
      return true;
    case RoundingMode::kNearestEven:
    case RoundingMode::kNearestAway:
    case RoundingMode::kTowardZero:
    case RoundingMode::kStochastic:  // not with at most 32 random bits: see RangeOfF32
      break;
  }
  return false;
}

ExponentRange RangeOfF32(const FormatSpec& format, RoundingMode mode) {
  if (MovesTinyNumbers(mode) || format.zero == Zero::kNone) return ExponentRange::kGeneral;
  if (format.MinExponent() == -126) return ExponentRange::kSame;
  // A float32 subnormal is below 2^-126. Stochastic rounding with 32 bits never moves a number
  // below 2^-33 of the smallest subnormal; rounding to nearest never moves one below 2^-1 of it.
  return format.SubnormalExponent() - 34 > -126 ? ExponentRange::kNarrower
                                                : ExponentRange::kGeneral;
}

}  // namespace

EncodePlan MakeEncodePlan(const FormatSpec& format, const Rounding& rounding, Overflow overflow) {
  const int mode = static_cast<int>(rounding.mode);
  NUMSIM_REQUIRE(IsRoundingMode(mode), "MakeEncodePlan: there is no rounding mode {}", mode);
  NUMSIM_REQUIRE(rounding.mode != RoundingMode::kStochastic ||
                     (rounding.random_bits >= 1 && rounding.random_bits <= 32),
                 "MakeEncodePlan: {} random bits, expected 1 to 32",
                 rounding.random_bits);
  EncodePlan plan;
  plan.format = format;
  plan.rounding = rounding;
  plan.overflow = overflow;
  const int wider = format.full_range ? 1 : 0;
  plan.mantissa_bits = format.mantissa_bits + wider;
  plan.min_exponent = format.MinExponent() + wider;
  plan.ordinal_offset = format.zero == Zero::kNone ? 1 : 0;
  plan.max_ordinal = format.MaxFiniteCode() + plan.ordinal_offset;
  plan.least_ordinal = format.flush_subnormals ? uint32_t{1} << format.mantissa_bits : 0;
  for (const bool negative : {false, true}) {
    plan.overflow_ordinal[negative] =
        OverflowCode(format, rounding.mode, overflow, negative) + plan.ordinal_offset;
    plan.infinity_ordinal[negative] =
        InfinityInputCode(format, overflow, negative) + plan.ordinal_offset;
    plan.infinity_flags[negative] = InfinityFlags(format, overflow, negative);
  }
  plan.uniform_specials = format.sign == Sign::kSignMagnitude &&
                          plan.overflow_ordinal[0] == plan.overflow_ordinal[1] &&
                          plan.overflow_ordinal[0] == plan.infinity_ordinal[0];
  plan.unsigned_zero = format.sign == Sign::kSignMagnitude && format.zero == Zero::kUnsigned;
  plan.sign_bit = format.SignBit();
  plan.nan_code = format.HasNan() ? format.NanCode() : format.MaxFiniteCode();
  plan.nan_sign = format.NanHasSign() ? format.SignBit() : 0;
  const uint32_t nan_or_lowest = format.HasNan() ? format.NanCode() : 0;
  plan.negative_code = overflow == Overflow::kNonsaturate ? nan_or_lowest : 0;
  plan.negative_infinity_code = overflow == Overflow::kSaturate ? 0 : nan_or_lowest;
  plan.nan_flags = format.HasNan() ? 0 : kInvalid;
  plan.has_underflow = !format.IsFixedPoint();
  plan.range_f32 = RangeOfF32(format, rounding.mode);
  return plan;
}

}  // namespace numsim
