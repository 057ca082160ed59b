// Exact results, neutral operands and special values, whatever the format: on all pairs of codes of
// small formats and on random pairs of wide ones.
#include <gtest/gtest.h>

#include <bit>

#include "numsim/arith/arith.h"
#include "tests/arith/laws.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

class Identities : public FormatLaws {};

INSTANTIATE_TEST_SUITE_P(, Identities, testing::ValuesIn(kLawFormats), LawFormatName);

// Two numbers within a factor of two have an exact difference [Sterbenz], for the subnormals are
// spaced as the smallest normal numbers are.
TEST_P(Identities, DifferencesOfNeighbouringNumbersAreExact) {
  std::vector<Operand> codes = FiniteCodes();
  for (size_t i = 0, n = codes.size(); i < n && format.Bits() > 8; ++i) {
    const uint32_t near = (codes[i].code & ~format.SignBit()) * 65 / 64;
    if (near <= format.MaxFiniteCode()) codes.push_back({format, near});
  }
  int pairs = 0;
  for (const EncodePlan& to : Plans()) {
    ForPairs(codes, [&](const Operand& x, const Operand& y) {
      const double a = Value(x), b = Value(y);
      if (!(b > 0 && b / 2 <= a && a <= 2 * b)) return;
      ++pairs;
      const Rounded r = Subtract(x, y, to, kDraw);
      ASSERT_EQ(ValueOf(r), a - b) << Text(x) << " - " << Text(y) << " to " << Text(to);
      ASSERT_EQ(r.flags, 0) << Text(x) << " - " << Text(y) << " to " << Text(to);
    });
  }
  EXPECT_GT(pairs, kSanitized ? 100 : 1000);
}

TEST_P(Identities, XMinusXIsPositiveZeroButInModeDownNegativeZero) {
  for (const EncodePlan& to : Plans()) {
    const bool negative = to.rounding.mode == RoundingMode::kDown && HoldsNegativeZero(format);
    const Rounded expected = {negative ? format.SignBit() : 0, 0};
    for (const Operand& x : FiniteCodes()) {
      ASSERT_EQ(Subtract(x, x, to, kDraw), expected) << Text(x) << " to " << Text(to);
      if (Value(x) == 0) continue;
      ASSERT_EQ(Add(Negative(x), x, to, kDraw), expected) << Text(x) << " to " << Text(to);
      ASSERT_EQ(FusedMultiplyAdd(x, Negative(one), x, to, kDraw), expected) << Text(x);
    }
  }
}

TEST_P(Identities, SumsOfZerosKeepACommonSign) {
  if (!HoldsNegativeZero(format)) GTEST_SKIP() << GetParam() << " has no negative zero";
  const Operand minus = Negative(zero);
  for (const EncodePlan& to : Plans()) {
    const uint32_t mixed = to.rounding.mode == RoundingMode::kDown ? minus.code : zero.code;
    EXPECT_EQ(Add(zero, zero, to).code, zero.code) << Text(to);
    EXPECT_EQ(Add(minus, minus, to).code, minus.code) << Text(to);
    EXPECT_EQ(Add(zero, minus, to).code, mixed) << Text(to);
    EXPECT_EQ(Add(minus, zero, to).code, mixed) << Text(to);
    EXPECT_EQ(FusedMultiplyAdd(minus, one, minus, to).code, minus.code) << Text(to);
    EXPECT_EQ(FusedMultiplyAdd(minus, minus, minus, to).code, mixed) << Text(to);
    EXPECT_EQ(FusedAddAdd(minus, minus, minus, to).code, minus.code) << Text(to);
    EXPECT_EQ(FusedAddAdd(zero, zero, zero, to).code, zero.code) << Text(to);
    EXPECT_EQ(FusedAddAdd(minus, zero, minus, to).code, mixed) << Text(to);
    EXPECT_EQ(FusedAddAdd(one, Negative(one), zero, to).code, mixed) << Text(to);
    EXPECT_EQ(FusedAddAdd(one, zero, Negative(one), to).code, mixed) << Text(to);
  }
}

TEST_P(Identities, OneAndZeroAreNeutral) {
  for (const EncodePlan& to : Plans()) {
    if (to.overflow == Overflow::kSaturate) continue;  // changes infinities
    for (const Operand& x : Codes()) {
      if (std::isnan(Value(x))) continue;
      const Rounded same = {x.code, 0};
      SCOPED_TRACE(Text(x) + " to " + Text(to));
      ASSERT_EQ(Multiply(x, one, to, kDraw), same);
      ASSERT_EQ(Divide(x, one, to, kDraw), same);
      ASSERT_EQ(ScaleByPowerOfTwo(x, 0, to, kDraw), same);
      ASSERT_EQ(Convert(x, to, kDraw), same);
      if (Value(x) == 0) continue;
      ASSERT_EQ(Add(x, zero, to, kDraw), same);
      ASSERT_EQ(Subtract(x, zero, to, kDraw), same);
      if (std::isinf(Value(x))) continue;
      ASSERT_EQ(Divide(x, x, to, kDraw), (Rounded{one.code, 0}));
      ASSERT_EQ(Remainder(x, x, to, kDraw).flags, 0);
      ASSERT_EQ(Value(Operand{format, Remainder(x, x, to, kDraw).code}), 0);
    }
  }
}

TEST_P(Identities, FusedOperationsWithANeutralOperandAreTheSimpleOnes) {
  for (const EncodePlan& to : Plans()) {
    ForPairs(Codes(), [&](const Operand& a, const Operand& b) {
      ASSERT_EQ(FusedMultiplyAdd(one, a, b, to, kDraw), Add(a, b, to, kDraw))
          << Text(a) << " + " << Text(b) << " to " << Text(to);
      if (Value(a) != 0 && Value(b) != 0) {
        ASSERT_EQ(FusedMultiplyAdd(a, b, zero, to, kDraw), Multiply(a, b, to, kDraw))
            << Text(a) << " * " << Text(b) << " to " << Text(to);
      }
      const bool zero_sum = Value(a) + Value(b) == 0;
      if (zero_sum) return;
      ASSERT_EQ(FusedAddAdd(a, b, zero, to, kDraw), Add(a, b, to, kDraw))
          << Text(a) << " + " << Text(b) << " to " << Text(to);
    });
  }
}

TEST_P(Identities, FusedSumsDoNotDependOnOrder) {
  const std::vector<Operand> codes = RandomCodes(format, 3 * 4000, 5);
  for (const EncodePlan& to : Plans()) {
    for (size_t i = 0; i < codes.size(); i += 3) {
      const Operand &a = codes[i], &b = codes[i + 1], &c = codes[i + 2];
      const Rounded r = FusedAddAdd(a, b, c, to, kDraw);
      SCOPED_TRACE(Text(a) + ", " + Text(b) + ", " + Text(c) + " to " + Text(to));
      ASSERT_EQ(r, FusedAddAdd(a, c, b, to, kDraw));
      ASSERT_EQ(r, FusedAddAdd(b, a, c, to, kDraw));
      ASSERT_EQ(r, FusedAddAdd(b, c, a, to, kDraw));
      ASSERT_EQ(r, FusedAddAdd(c, a, b, to, kDraw));
      ASSERT_EQ(r, FusedAddAdd(c, b, a, to, kDraw));
      ASSERT_EQ(FusedMultiplyAdd(a, b, c, to, kDraw), FusedMultiplyAdd(b, a, c, to, kDraw));
    }
  }
}

TEST_P(Identities, RootOfAnExactSquareIsTheMagnitude) {
  std::vector<Operand> codes = FiniteCodes();
  for (int i = -60; i <= 60 && format.Bits() > 8; ++i) codes.push_back({format, CodeOf(format, i)});
  int squares = 0;
  for (const EncodePlan& to : Plans()) {
    for (const Operand& x : codes) {
      const Rounded square = Multiply(x, x, to, kDraw);
      if (square.flags != 0) continue;
      ++squares;
      ASSERT_EQ(SquareRoot({format, square.code}, to, kDraw), (Rounded{Magnitude(x).code, 0}))
          << Text(x) << " to " << Text(to);
    }
  }
  EXPECT_GT(squares, 20);
}

TEST_P(Identities, RemaindersAreExactAndAtMostHalfTheDivisor) {
  for (const EncodePlan& to : Plans()) {
    ForPairs(FiniteCodes(), [&](const Operand& x, const Operand& y) {
      if (Value(y) == 0) return;
      const Rounded r = Remainder(x, y, to, kDraw);
      SCOPED_TRACE(fmt::format("{:#x} rem {:#x}", x.code, y.code));
      ASSERT_EQ(r.flags, 0) << Text(to);
      ASSERT_LE(std::abs(ValueOf(r)), std::abs(Value(y)) / 2);
      const double expected = std::remainder(Value(x), Value(y));  // exact
      if (HoldsNegativeZero(format)) {
        ASSERT_TRUE(SameValue(ValueOf(r), expected));
      }
      ASSERT_EQ(ValueOf(r), expected);
    });
  }
}

// Infinities, zeros, ones and NaN behave as the host's float64 numbers do.
TEST_P(Identities, SpecialValuesFollowIeee754) {
  std::vector<Operand> specials;
  for (const float x : {0.0f, -0.0f, 1.0f, -1.0f, kInfinity, -kInfinity, kNaN}) {
    const Operand a = {format, Encode(format, x)};
    if (SameValue(Value(a), x)) specials.push_back(a);
  }
  const EncodePlan to = Plan(RoundingMode::kNearestEven);
  const auto expect = [&](const Rounded& r, double value, bool nan_in, bool by_zero) {
    const bool invalid = std::isnan(value) && !nan_in;
    if (std::isinf(value) && !format.HasInfinity()) {
      value = Value(format, Encode(format, value));
    }
    Flags flags = invalid || (std::isnan(value) && !format.HasNan()) ? kInvalid : 0;
    if (by_zero) flags |= kDivideByZero;
    if (by_zero && !format.HasInfinity()) flags |= kOverflow | kInexact;
    ASSERT_EQ(r.flags, flags) << value;
    if (std::isnan(value) && !format.HasNan()) value = static_cast<double>(MaxFinite(format));
    if (value == 0 && !HoldsNegativeZero(format)) value = 0.0;
    ASSERT_TRUE(SameValue(ValueOf(r), value)) << ValueOf(r) << ", not " << value;
    if (std::isnan(value) && (nan_in || invalid)) {
      ASSERT_EQ(r.code, format.NanCode());
    }
  };
  ForPairs(specials, [&](const Operand& x, const Operand& y) {
    SCOPED_TRACE(Text(x) + " and " + Text(y));
    const double a = Value(x), b = Value(y);
    const bool nan = std::isnan(a) || std::isnan(b);
    expect(Add(x, y, to), a + b, nan, false);
    expect(Subtract(x, y, to), a - b, nan, false);
    expect(Multiply(x, y, to), a * b, nan, false);
    expect(Divide(x, y, to), a / b, nan, std::isfinite(a) && a != 0 && b == 0);
    expect(Remainder(x, y, to), std::remainder(a, b), nan, false);
    expect(SquareRoot(x, to), std::sqrt(a), std::isnan(a), false);
    expect(Reciprocal(x, to), 1 / a, std::isnan(a), a == 0);
    for (const Operand& z : specials) {
      const double c = Value(z);
      SCOPED_TRACE(Text(z));
      const bool zero_times_infinity = std::isnan(a * b) && !nan;
      const bool quiet = (nan || std::isnan(c)) && !zero_times_infinity;
      expect(FusedMultiplyAdd(x, y, z, to), std::fma(a, b, c), quiet, false);
      expect(FusedAddAdd(x, y, z, to), a + b + c, nan || std::isnan(c), false);
    }
  });
}

TEST_P(Identities, ScalingIsMultiplicationByThePower) {
  const EncodePlan exact = MakeEncodePlan(Spec("fp32"));
  for (const EncodePlan& to : Plans()) {
    for (const Operand& x : Codes()) {
      for (int n : {-149, -126, -24, -9, -1, 1, 2, 7, 20, 127}) {
        const Rounded power = ScaleByPowerOfTwo({exact.format, CodeOf(exact.format, 1)}, n, exact);
        ASSERT_EQ(power.flags, 0);
        ASSERT_EQ(Value(exact.format, power.code), std::ldexp(1.0, n));
        ASSERT_EQ(ScaleByPowerOfTwo(x, n, to, kDraw),
                  Multiply(x, {exact.format, power.code}, to, kDraw))
            << Text(x) << " * 2^" << n << " to " << Text(to);
      }
      for (int64_t sign : {-1, 1}) {
        const Rounded far = ScaleByPowerOfTwo(x, sign * 65536, to, kDraw);
        ASSERT_EQ(ScaleByPowerOfTwo(x, sign * INT64_MAX, to, kDraw), far) << Text(x);
      }
      ASSERT_EQ(ScaleByPowerOfTwo(x, INT64_MIN, to, kDraw),
                ScaleByPowerOfTwo(x, -65536, to, kDraw));
      ASSERT_EQ(Reciprocal(x, to, kDraw), Divide(one, x, to, kDraw)) << Text(x);
    }
  }
}

// NaNs too keep their sign where both formats have NaNs of both signs.
TEST(Convert, EqualsTheEncodingOfTheDecodedNumber) {
  std::vector<Format> sources = NarrowFormats();
  sources.push_back(ParseFormat("bf16"));
  for (const Format& source : sources) {
    for (const char* target : {"e4m3fn", "e5m2", "e4m3fnuz", "fp32", "e8m0fnu", "int8", "e2m1fn"}) {
      for (Overflow overflow : kPolicies) {
        const EncodePlan to = MakeEncodePlan(Spec(target), {.mode = RoundingMode::kDown}, overflow);
        for (const Operand& a : AllCodes(source.spec)) {
          const uint32_t value = std::bit_cast<uint32_t>(Decode(source.spec, a.code));
          ASSERT_EQ(Convert(a, to).code, EncodeF32(to, value, 0)) << Text(a) << " to " << Text(to);
        }
      }
    }
  }
}

}  // namespace
}  // namespace numsim
