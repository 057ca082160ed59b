// Elementary functions: special values, exact results, flags, and properties that hold for the real
// functions.
#include "numsim/arith/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "numsim/arith/internal/elementary_limits.h"
#include "numsim/arith/shared/exact_elementary.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/shared/lanes_scalar.h"
#include "tests/support/codes.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

using F = ElementaryFunction;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Rounded InFp16(F function, double x) {
  return Elementary(function, {kFp16, CodeOf(kFp16, x)}, MakeEncodePlan(kFp16));
}

struct Special {
  F function;
  double x, result;
  Flags flags;
};

TEST(Elementary, SpecialValuesAreTheLimits) {
  const Special cases[] = {
      {F::kExp, -kInf, 0.0, 0},
      {F::kExp, -0.0, 1, 0},
      {F::kExp, 0.0, 1, 0},
      {F::kExp, kInf, kInf, 0},
      {F::kExp2, -kInf, 0.0, 0},
      {F::kExp2, -0.0, 1, 0},
      {F::kExp2, 0.0, 1, 0},
      {F::kExp2, kInf, kInf, 0},
      {F::kLog, -kInf, kNan, kInvalid},
      {F::kLog, -1, kNan, kInvalid},
      {F::kLog, -0.0, -kInf, kDivideByZero},
      {F::kLog, 0.0, -kInf, kDivideByZero},
      {F::kLog, 1, 0.0, 0},
      {F::kLog, kInf, kInf, 0},
      {F::kLog2, -kInf, kNan, kInvalid},
      {F::kLog2, -1, kNan, kInvalid},
      {F::kLog2, -0.0, -kInf, kDivideByZero},
      {F::kLog2, 0.0, -kInf, kDivideByZero},
      {F::kLog2, 1, 0.0, 0},
      {F::kLog2, kInf, kInf, 0},
      {F::kTanh, -kInf, -1, 0},
      {F::kTanh, -0.0, -0.0, 0},
      {F::kTanh, 0.0, 0.0, 0},
      {F::kTanh, kInf, 1, 0},
      {F::kSigmoid, -kInf, 0.0, 0},
      {F::kSigmoid, -0.0, 0.5, 0},
      {F::kSigmoid, 0.0, 0.5, 0},
      {F::kSigmoid, kInf, 1, 0},
      {F::kGelu, -kInf, -0.0, 0},
      {F::kGelu, -0.0, -0.0, 0},
      {F::kGelu, 0.0, 0.0, 0},
      {F::kGelu, kInf, kInf, 0},
      {F::kGeluTanh, -kInf, -0.0, 0},
      {F::kGeluTanh, -0.0, -0.0, 0},
      {F::kGeluTanh, 0.0, 0.0, 0},
      {F::kGeluTanh, kInf, kInf, 0},
      {F::kExpMinusOne, -kInf, -1, 0},
      {F::kExpMinusOne, -0.0, -0.0, 0},
      {F::kLogOnePlus, -1, -kInf, kDivideByZero},
      {F::kLogOnePlus, -2, kNan, kInvalid},
      {F::kSoftplus, -kInf, 0.0, 0},
      {F::kRsqrt, -0.0, -kInf, kDivideByZero},
      {F::kRsqrt, 0.0, kInf, kDivideByZero},
      {F::kRsqrt, kInf, 0.0, 0},
      {F::kRsqrt, 0.25, 2, 0},
      {F::kRsqrt, -4, kNan, kInvalid},
      {F::kSin, kInf, kNan, kInvalid},
      {F::kSin, -0.0, -0.0, 0},
      {F::kCos, -0.0, 1, 0},
      {F::kTan, -kInf, kNan, kInvalid},
      {F::kArcSin, 2, kNan, kInvalid},
      {F::kArcCos, 1, 0.0, 0},
      {F::kSinPi, 3, 0.0, 0},
      {F::kSinPi, -3, -0.0, 0},
      {F::kSinPi, 1.5, -1, 0},
      {F::kCosPi, 2.5, 0.0, 0},
      {F::kCosPi, 3, -1, 0},
      {F::kTanPi, 1, -0.0, 0},
      {F::kTanPi, 2, 0.0, 0},
      {F::kTanPi, 0.5, kInf, kDivideByZero},
      {F::kTanPi, 1.5, -kInf, kDivideByZero},
      {F::kTanPi, -0.5, -kInf, kDivideByZero},
      {F::kTanPi, 0.75, -1, 0},
      {F::kArcSinPi, -1, -0.5, 0},
      {F::kArcCosPi, -1, 1, 0},
      {F::kArcCosPi, 0.0, 0.5, 0},
      {F::kArcTanPi, 1, 0.25, 0},
      {F::kArcTanPi, -kInf, -0.5, 0},
      {F::kSinh, -kInf, -kInf, 0},
      {F::kCosh, -kInf, kInf, 0},
      {F::kCosh, 0.0, 1, 0},
      {F::kArcSinh, -kInf, -kInf, 0},
      {F::kArcCosh, 1, 0.0, 0},
      {F::kArcCosh, 0.5, kNan, kInvalid},
      {F::kArcTanh, 1, kInf, kDivideByZero},
      {F::kArcTanh, -1, -kInf, kDivideByZero},
      {F::kArcTanh, kInf, kNan, kInvalid},
  };
  for (const Special& c : cases) {
    const Rounded got = InFp16(c.function, c.x);
    EXPECT_TRUE(SameValue(Value(kFp16, got.code), c.result))
        << ToString(c.function) << " of " << c.x << ": " << Value(kFp16, got.code);
    EXPECT_EQ(got.flags, c.flags) << ToString(c.function) << " of " << c.x;
  }
}

TEST(Elementary, NanGivesPositiveNanAndOnlySignallingOnesAreInvalid) {
  for (F function : kElementaryFunctions) {
    for (const uint32_t sign : {0u, 0x8000u}) {
      const EncodePlan to = MakeEncodePlan(kFp16);
      EXPECT_EQ(Elementary(function, {kFp16, sign | 0x7E01}, to), (Rounded{0x7E00, 0}));
      EXPECT_EQ(Elementary(function, {kFp16, sign | 0x7D00}, to), (Rounded{0x7E00, kInvalid}));
    }
  }
}

TEST(Elementary, PowersOfTwoAreExact) {
  const EncodePlan to = MakeEncodePlan(kFp32);
  for (int n = -149; n <= 127; ++n) {
    const uint32_t whole = CodeOf(kFp32, n), power = CodeOf(kFp32, std::ldexp(1.0, n));
    EXPECT_EQ(Elementary(F::kExp2, {kFp32, whole}, to), (Rounded{power, 0})) << n;
    EXPECT_EQ(Elementary(F::kLog2, {kFp32, power}, to), (Rounded{whole, 0})) << n;
  }
  EXPECT_EQ(Elementary(F::kExp2, {kFp32, CodeOf(kFp32, 128)}, to),
            (Rounded{CodeOf(kFp32, kInf), kOverflow | kInexact}));
  EXPECT_EQ(Elementary(F::kExp2, {kFp32, CodeOf(kFp32, -150)}, to),
            (Rounded{0, kUnderflow | kInexact}));
}

bool IsInteger(double x) { return x == std::floor(x); }

// Whether the result at x is rational with finitely many bits, infinite or NaN. `log2` is set if x is
// a power of two.
bool IsExact(F function, double x, std::optional<int> log2) {
  const double magnitude = std::fabs(x);
  switch (function) {
    case F::kExp2:
      return IsInteger(x) && magnitude <= 127 + 22 * (x < 0);
    case F::kLog:
      return x < 0 || x == 1;
    case F::kLog2:
      return x < 0 || log2.has_value();
    case F::kLogOnePlus:
      return x <= -1;
    case F::kRsqrt:
      return x < 0 || (log2 && *log2 % 2 == 0);
    case F::kArcSin:
      return magnitude > 1;
    case F::kArcCos:
      return magnitude > 1 || x == 1;
    case F::kSinPi:
    case F::kCosPi:
      return IsInteger(2 * x);
    case F::kTanPi:
      return IsInteger(4 * x);
    case F::kArcSinPi:
    case F::kArcCosPi:
    case F::kArcTanh:
      return magnitude >= 1;
    case F::kArcTanPi:
      return magnitude == 1;
    case F::kArcCosh:
      return x <= 1;
    default:
      return false;
  }
}

// All other results are inexact.
TEST(Elementary, EveryOtherResultIsInexact) {
  for (F function : kElementaryFunctions) {
    for (uint32_t code = 0; code <= 0xFFFF; code += SampleEvery(37)) {
      const Unrounded x = ExactValue(kBf16, code);
      if (x.kind != NumberKind::kFinite || x.significand == 0) continue;
      const bool exact =
          (EncodeUnrounded(MakeEncodePlan(kFp32), exact::Elementary(function, x).value).flags &
           kInexact) == 0;
      const double value = Value(kBf16, code);
      int exponent;
      const bool power = std::frexp(value, &exponent) == 0.5;
      const bool expected =
          IsExact(function, value, power ? std::optional(exponent - 1) : std::nullopt);
      ASSERT_EQ(exact, expected) << ToString(function) << " of " << value;
    }
  }
}

TEST(Elementary, LogarithmOfZeroIsADivisionByZeroInEveryFormat) {
  const Rounded in_e4m3fn =
      Elementary(F::kLog, {kE4M3fn, 0}, MakeEncodePlan(kE4M3fn));  // no infinity: NaN
  EXPECT_TRUE(std::isnan(Value(kE4M3fn, in_e4m3fn.code)));
  EXPECT_NE(in_e4m3fn.flags & kDivideByZero, 0);
}

// Compares two unrounded numbers by value; -1, 0 or 1.
int Order(const Unrounded& a, const Unrounded& b) {
  const exact::Outcome difference = exact::Sum(a, exact::Negated(b), false);
  if (difference.value.kind == NumberKind::kFinite && difference.value.significand == 0) return 0;
  return difference.value.negative ? -1 : 1;
}

Unrounded Of(F function, const FormatSpec& format, uint32_t code) {
  return exact::Elementary(function, ExactValue(format, code)).value;
}

TEST(Elementary, RisingFunctionsRise) {
  constexpr uint32_t kStep = SampleEvery(17);
  for (const FormatSpec& format : {kFp16, kBf16}) {
    const uint32_t end = format.InfinityCode(), minus = format.SignBit();
    for (F function : {F::kExp, F::kExp2, F::kLog, F::kLog2, F::kTanh, F::kSigmoid}) {
      const bool logarithm = function == F::kLog || function == F::kLog2;
      std::optional<Unrounded> last;
      const auto expect_above_last = [&](uint32_t code) {
        const Unrounded y = Of(function, format, code);
        if (last) {
          ASSERT_GE(Order(y, *last), 0) << ToString(function) << " of " << code;
        }
        last = y;
      };
      if (!logarithm) {
        for (uint32_t code = end; code > kStep; code -= kStep) expect_above_last(code | minus);
      }
      for (uint32_t code = 0; code <= end; code += kStep) expect_above_last(code);
    }
  }
}

TEST(Elementary, TanhIsOdd) {
  for (uint32_t code = 0; code < kBf16.InfinityCode(); ++code) {
    Unrounded y = Of(F::kTanh, kBf16, code | kBf16.SignBit());
    EXPECT_TRUE(y.negative);
    y.negative = false;
    const Unrounded z = Of(F::kTanh, kBf16, code);
    ASSERT_TRUE(y.significand == z.significand && y.exponent == z.exponent && !z.negative) << code;
  }
}

// Returns a + b - c of unrounded numbers in units of 2^-120, and in *limit how much their rounding
// to odd can have changed it. Requires numbers from 2^-56 to 2^6.
scalar::Int128 SumInFixedPoint(const Unrounded& a,
                               const Unrounded& b,
                               const Unrounded& c,
                               scalar::Int128* limit) {
  scalar::Int128 sum = 0;
  *limit = 0;
  for (const Unrounded* x : {&a, &b, &c}) {
    const auto magnitude = scalar::Int128{static_cast<int64_t>(x->significand)}
                           << (x->exponent + 120);
    sum += x->negative != (x == &c) ? -magnitude : magnitude;
    if (std::bit_width(x->significand) >= 62) *limit += scalar::Int128{1} << (x->exponent + 120);
  }
  return sum;
}

// sigmoid(x) + sigmoid(-x) = 1 and gelu(x) - gelu(-x) = x, with x and -x computed in different ways.
TEST(Elementary, ValuesAtOppositeArgumentsBelongTogether) {
  const Unrounded one = {NumberKind::kFinite, false, 0, 1};
  for (uint32_t code = 0x0400; code < CodeOf(kFp16, 8); code += SampleEvery(7)) {
    const Operand x = {kFp16, code}, minus = {kFp16, code | 0x8000};
    scalar::Int128 limit;
    const scalar::Int128 rest = SumInFixedPoint(
        Of(F::kSigmoid, kFp16, x.code), Of(F::kSigmoid, kFp16, minus.code), one, &limit);
    ASSERT_TRUE(-limit < rest && rest < limit) << "sigmoid " << code;
    for (F function : {F::kGelu, F::kGeluTanh}) {
      const Unrounded below = exact::Negated(Of(function, kFp16, minus.code));
      if (below.exponent < -119) continue;
      const scalar::Int128 difference =
          SumInFixedPoint(Of(function, kFp16, code), below, ExactValue(kFp16, code), &limit);
      ASSERT_TRUE(-limit < difference && difference < limit) << ToString(function) << code;
    }
  }
}

// Both rounded to odd, perhaps with one bit more: the 61 bits above are the same.
bool SameValue(const Unrounded& a, const Unrounded& b) {
  const auto cut = [](const Unrounded& x) {
    const int down = static_cast<int>(std::bit_width(x.significand)) - 61;
    return std::tuple(x.negative, x.exponent + down, x.significand >> down);
  };
  return cut(a) == cut(b);
}

TEST(Elementary, EveryNumberOfLimbsThatDecidesGivesTheSame) {
  int by_128 = 0, undecided_by_128 = 0;
  for (F function : kElementaryFunctions) {
    for (uint32_t code = 1; code < kBf16.InfinityCode(); code += 7 * SampleEvery(31)) {
      for (const bool negative : {false, true}) {
        const Unrounded x = ExactValue(kBf16, code);
        const ElementaryArgument argument = {negative, x.significand, x.exponent};
        if (argument.IsAtLeast(4) || argument.IsBelow(-100) || function == F::kRsqrt) continue;
        const auto limit = LimitAtFinite(function, argument);
        if (limit && limit->kind < Limit::Kind::kJustAbove)
          continue;  // exact, or not in the domain
        const auto best = EvaluateElementary(function, argument, 8);
        ASSERT_TRUE(best.has_value()) << ToString(function) << " of " << code;
        // Also where a bound and not an evaluation gives the result.
        const Unrounded y =
            exact::Elementary(function, {NumberKind::kFinite, negative, argument.e, argument.m})
                .value;
        ASSERT_TRUE(SameValue(y, *best)) << ToString(function) << " of " << code;
        for (int limbs : {2, 4}) {
          const auto result = EvaluateElementary(function, argument, limbs);
          if (limbs == 2) ++(result ? by_128 : undecided_by_128);
          if (!result) continue;
          ASSERT_EQ(result->significand, best->significand) << ToString(function) << code;
          ASSERT_EQ(result->exponent, best->exponent) << ToString(function) << code;
          ASSERT_EQ(result->negative, best->negative) << ToString(function) << code;
        }
      }
    }
  }
  EXPECT_GT(by_128, 0);
  EXPECT_GT(undecided_by_128, 0);
}

TEST(Elementary, NamesAreThoseOfTheOracle) {
  EXPECT_EQ(ToString(F::kExp), "exp");
  EXPECT_EQ(ToString(F::kGeluTanh), "gelu-tanh");
  EXPECT_EQ(ToString(F::kArcCosPi), "acospi");
  for (size_t i = 0; i < kElementaryNames.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kElementaryNames[i].function), i);
  }
}

}  // namespace
}  // namespace numsim
