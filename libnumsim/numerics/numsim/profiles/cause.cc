#include "numsim/profiles/cause.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numsim/base/keyword.h"
#include "numsim/formats/decode.h"

namespace numsim {
namespace {

using Cause = DifferenceCause;

constexpr Keyword<Cause> kNames[] = {{"nan-code", Cause::kNanCode},
                                     {"nan-lost", Cause::kNanLost},
                                     {"infinity", Cause::kInfinity},
                                     {"zero", Cause::kZero},
                                     {"sign-of-zero", Cause::kSignOfZero},
                                     {"shift-wraps-a", Cause::kShiftWrapsA},
                                     {"shift-wraps-b", Cause::kShiftWrapsB},
                                     {"negative", Cause::kNegative},
                                     {"largest-value", Cause::kLargestValue},
                                     {"early-overflow-a", Cause::kEarlyOverflowA},
                                     {"early-overflow-b", Cause::kEarlyOverflowB},
                                     {"overflow", Cause::kOtherOverflow},
                                     {"spacing", Cause::kSpacing},
                                     {"tie", Cause::kTie},
                                     {"near-tie", Cause::kNearTie},
                                     {"rounding", Cause::kRounding},
                                     {"nan-result", Cause::kNanResult}};

constexpr int kWrap = 64;  // binades by which a shift count of 64 bits wraps around

double SourceValue(SourceType type, uint64_t bits) {
  if (type == SourceType::kFloat64) return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

uint64_t SourceBits(SourceType type, double value) {
  if (type == SourceType::kFloat64) return std::bit_cast<uint64_t>(value);
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

bool IsNumber(ValueClass c) {
  return c == ValueClass::kZero || c == ValueClass::kSubnormal || c == ValueClass::kNormal;
}

// One conversion and its result on the interval.
struct Side {
  const ProfileConversion& conversion;
  uint32_t code;

  const FormatSpec& Meaning() const { return conversion.meaning(); }
  ValueClass Class() const { return Classify(Meaning(), code); }
  double Value() const { return Decode(Meaning(), code); }
  double Largest() const { return MaxFinite(Meaning()); }
  // The largest magnitude that rounds to nearest to the largest value: half a step above it.
  double RoundsToLargest() const {
    const double below = Decode(Meaning(), Meaning().MaxFiniteCode() - 1);
    return Largest() + (Largest() - below) / 2;
  }
  int SmallestSpacing() const { return Meaning().SubnormalExponent(); }  // a power of two
  double SmallestNormal() const { return std::ldexp(1.0, Meaning().MinExponent()); }

  // True if x, far below the smallest value, has the result of x times 2^64.
  bool Wraps(double x) const {
    const SourceType from = conversion.source_type();
    if (!IsNumber(Class()) || Value() == 0 || std::fabs(x) > MinPositive(Meaning()) / 4) {
      return false;
    }
    if (conversion.random_bits() > 0) return false;
    return conversion.Encode(SourceBits(from, std::ldexp(x, kWrap))) == code;
  }
};

// Overflow of at least one side. `first` and `last` are the ends of the interval, as magnitudes.
Cause OverflowCause(const Side& a, const Side& b, double last) {
  if (a.Largest() != b.Largest()) return Cause::kLargestValue;
  if (last > a.RoundsToLargest()) return Cause::kOtherOverflow;
  const bool a_finite = IsNumber(a.Class());
  if (a_finite == IsNumber(b.Class())) return Cause::kOtherOverflow;
  return a_finite ? Cause::kEarlyOverflowB : Cause::kEarlyOverflowA;
}

// Two different numbers for inputs within the range of both sides.
Cause RoundingCause(const Side& a, const Side& b, double first, double last) {
  constexpr double kClose = 1.0 / 256;  // of the distance of the results
  const bool low = last <= std::max(a.SmallestNormal(), b.SmallestNormal());
  if (low && a.SmallestSpacing() != b.SmallestSpacing()) return Cause::kSpacing;
  const double step = std::fabs(a.Value() - b.Value());
  const double halfway = std::fabs(a.Value() + b.Value()) / 2;
  if (first == last && first == halfway) return Cause::kTie;
  const double farthest = std::max(std::fabs(first - halfway), std::fabs(last - halfway));
  return farthest <= kClose * step ? Cause::kNearTie : Cause::kRounding;
}

}  // namespace

std::string_view ToString(DifferenceCause cause) { return KeywordToString(kNames, cause); }

std::string Explanation(DifferenceCause cause, std::string_view a, std::string_view b) {
  const auto wraps = [](std::string_view side) {
    return fmt::format(
        "the exponent shift of {} wraps around: numbers far below its smallest value convert as if "
        "multiplied by 2^64",
        side);
  };
  const auto early = [](std::string_view side) {
    return fmt::format(
        "{} tests for overflow before it rounds: numbers that round to the largest value overflow",
        side);
  };
  switch (cause) {
    case Cause::kNanCode:
      return "NaN inputs: the codes of NaN differ";
    case Cause::kNanLost:
      return "NaN inputs: one side gives a number";
    case Cause::kInfinity:
      return "infinity converts differently";
    case Cause::kZero:
      return "zero converts differently";
    case Cause::kSignOfZero:
      return "results of zero differ in sign";
    case Cause::kShiftWrapsA:
      return wraps(a);
    case Cause::kShiftWrapsB:
      return wraps(b);
    case Cause::kNegative:
      return "negative numbers, which the format does not have";
    case Cause::kLargestValue:
      return "the largest values differ: overflow begins earlier on one side";
    case Cause::kEarlyOverflowA:
      return early(a);
    case Cause::kEarlyOverflowB:
      return early(b);
    case Cause::kOtherOverflow:
      return "overflow: one side saturates, or the codes for overflow differ";
    case Cause::kSpacing:
      return "small numbers: the values of the two sides are spaced differently there";
    case Cause::kTie:
      return "ties: numbers halfway between two values are rounded differently";
    case Cause::kNearTie:
      return "next to a tie: one side rounds twice, and the first rounding makes a tie";
    case Cause::kRounding:
      return "numbers are rounded in different directions";
    case Cause::kNanResult:
      return "one side gives NaN or infinity for numbers in range";
  }
  return "";
}

DifferenceCause CauseOf(const DifferingInterval& interval,
                        const ProfileConversion& conversion_a,
                        const ProfileConversion& conversion_b) {
  const Side a{conversion_a, interval.code_a}, b{conversion_b, interval.code_b};
  const SourceType from = conversion_a.source_type();
  const double signed_first = SourceValue(from, interval.first);
  const double signed_last = SourceValue(from, interval.last);
  const double first = std::fabs(signed_first), last = std::fabs(signed_last);
  if (std::isnan(first)) {
    const bool both = a.Class() == ValueClass::kNan && b.Class() == ValueClass::kNan;
    return both ? Cause::kNanCode : Cause::kNanLost;
  }
  if (std::isinf(first)) return Cause::kInfinity;
  if (a.Class() == ValueClass::kZero && b.Class() == ValueClass::kZero) return Cause::kSignOfZero;
  if (last == 0) return Cause::kZero;
  if (a.Wraps(signed_first) && a.Wraps(signed_last)) return Cause::kShiftWrapsA;
  if (b.Wraps(signed_first) && b.Wraps(signed_last)) return Cause::kShiftWrapsB;
  const bool negative = std::signbit(signed_first);
  if (negative && !(a.Meaning().IsSigned() && b.Meaning().IsSigned())) return Cause::kNegative;
  if (first > std::min(a.Largest(), b.Largest())) return OverflowCause(a, b, last);
  if (!IsNumber(a.Class()) || !IsNumber(b.Class())) return Cause::kNanResult;
  return RoundingCause(a, b, first, last);
}

}  // namespace numsim
