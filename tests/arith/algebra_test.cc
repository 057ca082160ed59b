// Symmetries and order: laws of arithmetic that hold whatever the format, on all pairs of codes of
// small formats and on random pairs of wide ones.
#include <gtest/gtest.h>

#include "numsim/arith/arith.h"
#include "tests/arith/laws.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

class Algebra : public FormatLaws {};

INSTANTIATE_TEST_SUITE_P(, Algebra, testing::ValuesIn(kLawFormats), LawFormatName);

TEST_P(Algebra, AddAndMultiplyCommute) {
  for (const EncodePlan& to : Plans()) {
    ForPairs(Codes(), [&](const Operand& a, const Operand& b) {
      ASSERT_EQ(Add(a, b, to, kDraw), Add(b, a, to, kDraw))
          << Text(a) << " + " << Text(b) << " to " << Text(to);
      ASSERT_EQ(Multiply(a, b, to, kDraw), Multiply(b, a, to, kDraw))
          << Text(a) << " * " << Text(b) << " to " << Text(to);
    });
  }
}

TEST_P(Algebra, SubtractionIsAdditionOfTheNegative) {
  for (const EncodePlan& to : Plans()) {
    ForPairs(Codes(), [&](const Operand& a, const Operand& b) {
      ASSERT_EQ(Subtract(a, b, to, kDraw), Add(a, Negative(b), to, kDraw))
          << Text(a) << " - " << Text(b) << " to " << Text(to);
    });
  }
}

// up(x op y) = -down(-(x op y)), and modes without a direction are symmetric.
TEST_P(Algebra, NegatedOperandsNegateTheResultInTheMirroredMode) {
  for (const EncodePlan& to : Plans()) {
    EncodePlan mirrored = MakeEncodePlan(format, to.rounding, to.overflow);
    if (to.rounding.mode != RoundingMode::kStochastic) {
      mirrored = Plan(Mirrored(to.rounding.mode), to.overflow);
    }
    const auto expect_negated = [&](const Rounded& x, const Rounded& y, const char* op) {
      ASSERT_EQ(x.flags, y.flags) << op << " " << Text(to);
      if ((x.flags & kInvalid) != 0 || (std::isnan(ValueOf(x)) && (x.flags & kOverflow) == 0)) {
        ASSERT_EQ(x.code, y.code) << op << " " << Text(to);  // the one NaN
      } else {
        ASSERT_EQ(Negative({format, x.code}).code, y.code) << op << " " << Text(to);
      }
    };
    ForPairs(Codes(), [&](const Operand& a, const Operand& b) {
      SCOPED_TRACE(a.code);
      const Operand minus_a = Negative(a), minus_b = Negative(b);
      const Rounded sum = Add(a, b, to, kDraw);
      if (sum.flags != 0 || ValueOf(sum) != 0) {  // the sign of an exact zero has its own rule
        expect_negated(sum, Add(minus_a, minus_b, mirrored, kDraw), "add");
      }
      const Rounded product = Multiply(a, b, to, kDraw);
      expect_negated(product, Multiply(minus_a, b, mirrored, kDraw), "multiply");
      ASSERT_EQ(product, Multiply(minus_a, minus_b, to, kDraw));
      expect_negated(
          Divide(a, b, to, kDraw), Divide(minus_a, b, mirrored, kDraw), "divide, numerator");
      if (minus_b.code != b.code) {
        expect_negated(
            Divide(a, b, to, kDraw), Divide(a, minus_b, mirrored, kDraw), "divide, denominator");
      }
      expect_negated(
          Remainder(a, b, to, kDraw), Remainder(minus_a, b, mirrored, kDraw), "remainder");
      ASSERT_EQ(Remainder(a, b, to, kDraw), Remainder(a, minus_b, to, kDraw));
    });
  }
}

TEST_P(Algebra, SumsProductsAndQuotientsAreMonotonicInEveryMode) {
  const std::vector<Operand> ascending = AscendingFiniteCodes();
  for (const EncodePlan& to : OrderedPlans()) {
    for (size_t i = 0; i < ascending.size(); i += SampleEvery(11)) {
      const Operand& b = ascending[i];
      double sum = -kInfinity, product = -kInfinity, quotient = -kInfinity;
      double difference = kInfinity;
      const bool positive = Value(b) > 0;
      for (const Operand& a : ascending) {
        const double next_sum = ValueOf(Add(a, b, to, kDraw));
        const double next_difference = ValueOf(Subtract(b, a, to, kDraw));
        ASSERT_GE(next_sum, sum) << Text(a) << " + " << Text(b) << " to " << Text(to);
        ASSERT_LE(next_difference, difference) << Text(b) << " - " << Text(a) << Text(to);
        sum = next_sum;
        difference = next_difference;
        if (!positive) continue;
        const double next_product = ValueOf(Multiply(a, b, to, kDraw));
        const double next_quotient = ValueOf(Divide(a, b, to, kDraw));
        ASSERT_GE(next_product, product) << Text(a) << " * " << Text(b) << " to " << Text(to);
        ASSERT_GE(next_quotient, quotient) << Text(a) << " / " << Text(b) << " to " << Text(to);
        product = next_product;
        quotient = next_quotient;
      }
    }
  }
}

TEST_P(Algebra, QuotientsFallAndRootsRiseWithTheirOperand) {
  const std::vector<Operand> ascending = AscendingFiniteCodes();
  for (const EncodePlan& to : OrderedPlans()) {
    double root = -kInfinity, reciprocal = kInfinity;
    for (const Operand& a : ascending) {
      if (Value(a) <= 0) continue;
      const double next_root = ValueOf(SquareRoot(a, to, kDraw));
      const double next_reciprocal = ValueOf(Reciprocal(a, to, kDraw));
      ASSERT_GE(next_root, root) << "square root of " << Text(a) << " to " << Text(to);
      ASSERT_LE(next_reciprocal, reciprocal) << "1 / " << Text(a) << " to " << Text(to);
      root = next_root;
      reciprocal = next_reciprocal;
    }
  }
}

TEST_P(Algebra, ConversionsAreMonotonic) {
  const std::vector<Operand> ascending = AscendingFiniteCodes();
  for (const char* name : {"e4m3fn", "e5m2", "e2m1fn", "int8", "bnb-e4m3", "fp16", "binary8p3se"}) {
    const FormatSpec target = Spec(name);
    std::vector<Rounding> roundings = {kStochastic8};
    for (RoundingMode mode : kDeterministicModes) roundings.push_back({.mode = mode});
    for (const Rounding& rounding : roundings) {
      const EncodePlan to = MakeEncodePlan(target, rounding, Overflow::kSaturate);
      double last = -kInfinity;
      for (const Operand& a : ascending) {
        const double value = Value(target, Convert(a, to, kDraw).code);
        ASSERT_GE(value, last) << Text(a) << " to " << Text(to);
        last = value;
      }
    }
  }
}

// Position of a value among those of the format, both zeros at 0.
int64_t Position(const FormatSpec& format, uint32_t code) {
  const int64_t magnitude = code & ~format.SignBit();
  return (code & format.SignBit()) != 0 ? -magnitude : magnitude;
}

TEST_P(Algebra, EveryModeDeliversOneOfTheNeighboursThatDownAndUpDeliver) {
  const Overflow overflow = format.HasInfinity() ? Overflow::kNonsaturate : Overflow::kSaturate;
  const EncodePlan down = Plan(RoundingMode::kDown, overflow);
  const EncodePlan up = Plan(RoundingMode::kUp, overflow);
  const std::vector<EncodePlan> plans = OrderedPlans();
  const auto check = [&](const Rounded& low, const Rounded& high, const Rounded& r, bool to_zero) {
    const int64_t a = Position(format, low.code), b = Position(format, high.code);
    const int64_t c = Position(format, r.code);
    ASSERT_LE(b - a, 1);
    ASSERT_TRUE(c == a || c == b);
    if (b > a) {
      ASSERT_NE(low.flags & kInexact, 0);
    }
    if (to_zero) {
      ASSERT_LE(std::abs(ValueOf(r)), std::abs(ValueOf(low)));
      ASSERT_LE(std::abs(ValueOf(r)), std::abs(ValueOf(high)));
    }
    ASSERT_EQ(low.flags & kInexact, r.flags & kInexact);
  };
  ForPairs(FiniteCodes(), [&](const Operand& x, const Operand& y) {
    SCOPED_TRACE(x.code * 65536 + y.code);
    const Rounded sums[] = {Add(x, y, down), Add(x, y, up)};
    const Rounded products[] = {Multiply(x, y, down), Multiply(x, y, up)};
    const Rounded quotients[] = {Divide(x, y, down), Divide(x, y, up)};
    for (const EncodePlan& to : plans) {
      const bool to_zero = to.rounding.mode == RoundingMode::kTowardZero;
      check(sums[0], sums[1], Add(x, y, to, kDraw), to_zero);
      check(products[0], products[1], Multiply(x, y, to, kDraw), to_zero);
      if (Value(y) == 0) continue;
      check(quotients[0], quotients[1], Divide(x, y, to, kDraw), to_zero);
    }
  });
}

}  // namespace
}  // namespace numsim
