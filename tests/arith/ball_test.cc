// Balls: whatever is computed with 128 bits, the ball of the result contains the number that 512
// bits give, and it is not much wider than it must be.
#include "numsim/arith/internal/ball.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numsim/arith/internal/ball_functions.h"
#include "tests/reference/inputs.h"

namespace numsim::ball {
namespace {

// The same number twice: with few bits, and with so many that its error does not matter.
struct Pair {
  Ball<2> narrow;
  Ball<8> wide;
};

Pair RandomPair(oracle::TestRandom& random) {
  const uint64_t significand = random.Next() | 1;
  const int exponent = static_cast<int>(random.Below(40)) - 84;
  const Pair p = {Exactly<2>(significand, exponent), Exactly<8>(significand, exponent)};
  const uint64_t divisor = random.Next() | 1;  // so that all limbs are in use
  return {p.narrow / divisor, p.wide / divisor};
}

// Returns |narrow - wide| / wide in units of 2^(1 - narrow.bits). Requires narrow.bits > 0.
double DistanceInUnits(const Pair& p) {
  Ball<8> widened;
  for (size_t i = 0; i < 2; ++i) widened.limbs[6 + i] = p.narrow.limbs[i];
  widened.exponent = p.narrow.exponent - 384;
  Ball<8> difference = widened - p.wide;
  if (difference.bits == 0) difference = p.wide - widened;
  if (difference.bits == 0) return 0;
  const double ratio = std::ldexp(static_cast<double>(difference.limbs[7]), -63) /
                       std::ldexp(static_cast<double>(p.wide.limbs[7]), -63);
  return std::ldexp(ratio, difference.Binade() - p.wide.Binade() + p.narrow.bits - 1);
}

void ExpectContains(const Pair& p, const char* what) {
  ASSERT_GT(p.narrow.bits, 0) << what;
  ASSERT_GT(p.wide.bits, 300) << what;
  EXPECT_LE(DistanceInUnits(p), static_cast<double>(p.narrow.error)) << what;
}

TEST(Ball, ExactNumbersHaveNoError) {
  const Ball<2> x = Exactly<2>(5, -7);
  EXPECT_EQ(x.error, 0u);
  EXPECT_EQ(x.bits, 128);
  EXPECT_EQ(x.Binade(), -5);
  EXPECT_EQ(x.limbs[1], uint64_t{5} << 61);
}

TEST(Ball, EveryOperationContainsTheExactResult) {
  oracle::TestRandom random(11);
  for (int i = 0; i < 3000; ++i) {
    const Pair a = RandomPair(random), b = RandomPair(random);
    const uint64_t m = random.Next() >> random.Below(63);
    ExpectContains(a, "division by an integer");
    ExpectContains({a.narrow * b.narrow, a.wide * b.wide}, "product");
    ExpectContains({a.narrow / b.narrow, a.wide / b.wide}, "quotient");
    ExpectContains({a.narrow + b.narrow, a.wide + b.wide}, "sum");
    ExpectContains({a.narrow * (m | 1), a.wide * (m | 1)}, "product with an integer");
    const bool less = (b.wide - a.wide).bits != 0;
    const Pair &high = less ? b : a, &low = less ? a : b;
    ExpectContains({high.narrow - low.narrow, high.wide - low.wide}, "difference");
  }
}

// An operand that is wrong by almost all that its error bound allows.
TEST(Ball, EveryOperationPassesOnTheErrorOfItsOperands) {
  oracle::TestRandom random(14);
  for (int down = 0; down < 60; ++down) {
    const uint64_t m = random.Next() | uint64_t{1} << 63;
    Pair x = {Exactly<2>(m, -63 - down), Exactly<8>(m, -63 - down)};
    SubtractFrom(x.narrow.limbs, {uint64_t{1} << 58, 0});  // from 2^-70 to 2^-69 of x
    x.narrow.bits = 70;
    x.narrow.error = 1;
    const Ball<2> two = Exactly<2>(2);
    const Ball<8> wide_two = Exactly<8>(2);
    ExpectContains(x, "operand");
    ExpectContains({two + x.narrow, wide_two + x.wide}, "sum");
    ExpectContains({x.narrow * x.narrow, x.wide * x.wide}, "product");
    ExpectContains({two / x.narrow, wide_two / x.wide}, "quotient");
    ExpectContains({x.narrow / 3, x.wide / 3}, "quotient by an integer");
    ExpectContains({x.narrow * 3, x.wide * 3}, "product with an integer");
    if (down < 4) continue;
    ExpectContains({two - x.narrow, wide_two - x.wide}, "difference");
  }
}

// 1 + x - 1 = x: the subtraction cancels what the sum had in common with 1.
TEST(Ball, CancellationLosesTheBitsThatItCancels) {
  oracle::TestRandom random(12);
  const Ball<2> one = Exactly<2>(1);
  const Ball<8> wide_one = Exactly<8>(1);
  for (int down = 1; down < 60; ++down) {
    Pair x = RandomPair(random);
    x = {Scaled(x.narrow, -down - x.narrow.Binade()), Scaled(x.wide, -down - x.wide.Binade())};
    const Pair back = {(one + x.narrow) - one, (wide_one + x.wide) - wide_one};
    ExpectContains(back, "1 + x - 1");
    EXPECT_GE(back.narrow.bits, 128 - down - 2);
  }
}

TEST(Ball, DifferenceOfEqualNumbersIsUnknown) {
  const Ball<2> third = Exactly<2>(1) / 3;
  EXPECT_EQ((third - third).bits, 0);
  EXPECT_EQ((third - Exactly<2>(1)).bits, 0);
  // And so is all that is computed with it.
  const Ball<2> unknown = third - third;
  EXPECT_EQ((unknown + third).bits, 0);
  EXPECT_EQ((third + unknown).bits, 0);
  EXPECT_EQ((third * unknown).bits, 0);
  EXPECT_EQ((third / unknown).bits, 0);
  EXPECT_EQ((Exactly<2>(1) - unknown).bits, 0);
}

TEST(Ball, FunctionsContainTheirValuesAndAreNotMuchWider) {
  oracle::TestRandom random(13);
  for (int i = 0; i < 500; ++i) {
    const uint64_t m = (random.Next() >> 40) | 1;
    const int e = -20 - static_cast<int>(random.Below(30));  // below 16
    const Pair exp = {Exp(Exactly<2>(m, e), i % 2 == 0), Exp(Exactly<8>(m, e), i % 2 == 0)};
    ExpectContains(exp, "exp");
    EXPECT_LT(exp.narrow.error, 4096u);
    const Pair series = {NormalSeries<2>(m, e), NormalSeries<8>(m, e)};
    ExpectContains(series, "normal series");
    EXPECT_LT(series.narrow.error, 8192u);
    const uint64_t b = uint64_t{1} << 24, a = b - b / 4 + (random.Next() >> 41);
    if (a == b) continue;
    const Pair log = {LogOfRatio<2>(a, b), LogOfRatio<8>(a, b)};
    ExpectContains(log, "log");
    EXPECT_LT(log.narrow.error, 64u);
  }
}

}  // namespace
}  // namespace numsim::ball
