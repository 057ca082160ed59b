// Elementary functions: special values, exact results, flags, and properties that hold for the real
// functions.
#include "numsim/arith/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include "numsim/arith/internal/elementary_evaluation.h"
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

// All other results are irrational.
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
      const bool expected = function == F::kExp2 ? value == std::floor(value) &&
                                                       std::fabs(value) <= 127 + 22 * (value < 0)
                            : function == F::kLog  ? value < 0 || value == 1
                            : function == F::kLog2 ? value < 0 || power
                                                   : false;
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
        const bool logarithm = function == F::kLog || function == F::kLog2;
        const bool integer = argument.e + std::countr_zero(argument.m) >= 0;
        if (argument.IsAtLeast(4) || argument.IsBelow(-100) || (logarithm && negative)) continue;
        if (function == F::kExp2 && integer) continue;
        if (logarithm && std::has_single_bit(argument.m)) continue;
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
}

}  // namespace
}  // namespace numsim
