// Exact operations on numbers wider than any format holds: results are exact, or rounded to odd
// with all the bits that the contract of Unrounded asks for.
#include "numsim/arith/shared/exact.h"

#include <gtest/gtest.h>

#include <bit>

#include "tests/reference/inputs.h"

namespace numsim {
namespace {

__extension__ using Uint128 = unsigned __int128;

Unrounded Number(uint64_t significand, int exponent, bool negative = false) {
  Unrounded x;
  x.negative = negative;
  x.exponent = exponent;
  x.significand = significand;
  return x;
}

// A number of 1 to `bits` bits, not zero.
uint64_t RandomSignificand(oracle::TestRandom& random, int bits) {
  const int width = 1 + static_cast<int>(random.Below(static_cast<uint64_t>(bits)));
  return (random.Next() >> (64 - width)) | (uint64_t{1} << (width - 1));
}

// Whether `x` may stand for an inexact result: enough bits, and the lowest set.
testing::AssertionResult IsRoundedToOdd(const Unrounded& x) {
  if (x.kind == NumberKind::kFinite && x.significand >> 63 == 0 && (x.significand & 1) != 0 &&
      std::bit_width(x.significand) >= Unrounded::kKeptBits) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << x.significand << " * 2^" << x.exponent;
}

// x * 2^n. Requires the result to fit.
Uint128 Scaled(Uint128 x, int n) { return n >= 0 ? x << n : x >> -n; }

TEST(ExactProduct, IsExactOrRoundedToOdd) {
  oracle::TestRandom random(71);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t a = RandomSignificand(random, 62), b = RandomSignificand(random, 62);
    const exact::Outcome r = exact::Product(Number(a, -300), Number(b, 40, true));
    const Uint128 product = Uint128{a} * b;
    const int cut = r.value.exponent + 260;
    ASSERT_EQ(r.flags, 0);
    ASSERT_TRUE(r.value.negative);
    const bool inexact = cut > 0 && (product & ((Uint128{1} << cut) - 1)) != 0;
    if (inexact) {
      ASSERT_TRUE(IsRoundedToOdd(r.value));
    }
    ASSERT_TRUE(r.value.significand == (Scaled(product, -cut) | (inexact ? 1 : 0)))
        << a << " " << b;
  }
}

// q rounded to odd lies within one unit of a / b, which no multiplication of integers misses.
TEST(ExactQuotient, IsExactOrRoundedToOdd) {
  oracle::TestRandom random(72);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t a = RandomSignificand(random, 62), b = RandomSignificand(random, 62);
    const exact::Outcome r = exact::Quotient(Number(a, 5), Number(b, -20));
    const uint64_t q = r.value.significand;
    const int e = 25 - r.value.exponent;  // a 2^e against q b
    ASSERT_GE(e, -1);
    const Uint128 one = 1;
    const Uint128 dividend = e >= 0 ? Uint128{a} << e : Uint128{a};
    const Uint128 scale = e >= 0 ? one : one << -e;
    if (dividend == scale * q * b) continue;
    ASSERT_TRUE(IsRoundedToOdd(r.value)) << a << " / " << b;
    ASSERT_TRUE(dividend > scale * (q - 1) * b && dividend < scale * (q + 1) * b) << a << " " << b;
  }
}

TEST(ExactRoot, IsExactOrRoundedToOdd) {
  oracle::TestRandom random(73);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t a = RandomSignificand(random, 62);
    const int exponent = static_cast<int>(random.Below(600)) - 300;
    const Unrounded root = exact::Root(Number(a, exponent)).value;
    const int e = exponent - 2 * root.exponent;  // a 2^e against root^2
    ASSERT_GE(e, 0);
    const Uint128 radicand = Uint128{a} << e;
    const Uint128 r = root.significand;
    ASSERT_TRUE(radicand >> e == a);
    if (radicand == r * r) continue;
    ASSERT_TRUE(IsRoundedToOdd(root)) << a;
    ASSERT_TRUE(radicand > (r - 1) * (r - 1) && radicand < (r + 1) * (r + 1)) << a;
  }
}

TEST(ExactSumOfTwo, IsExactOrRoundedToOdd) {
  oracle::TestRandom random(74);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t a = RandomSignificand(random, 62), b = RandomSignificand(random, 62);
    const int up = static_cast<int>(random.Below(64));
    const bool minus = random.Below(2) == 0;
    const Unrounded r = exact::Sum(Number(a, 7 + up), Number(b, 7, minus), false).value;
    const Uint128 high = Uint128{a} << up;
    const bool negative = minus && high < b;
    const Uint128 sum = !minus ? high + b : negative ? b - high : high - b;
    if (sum == 0) {
      ASSERT_EQ(r.significand, 0u);
      continue;
    }
    ASSERT_EQ(r.negative, negative);
    const int cut = r.exponent - 7;
    const bool inexact = cut > 0 && (sum & ((Uint128{1} << cut) - 1)) != 0;
    if (inexact) {
      ASSERT_TRUE(IsRoundedToOdd(r));
    }
    ASSERT_TRUE(r.significand == (Scaled(sum, -cut) | (inexact ? 1 : 0))) << a << " " << b;
  }
}

// Far below the other addend, the smaller one still shows.
TEST(ExactSumOfTwo, FarAddendLeavesTheLowestBit) {
  for (int distance : {60, 63, 64, 125, 126, 127, 128, 200, 5000}) {
    for (bool minus : {false, true}) {
      const Unrounded r = exact::Sum(Number(1, 0), Number(1, -distance, minus), false).value;
      const int top = r.exponent + static_cast<int>(std::bit_width(r.significand)) - 1;
      EXPECT_EQ(top, minus ? -1 : 0) << distance;
      EXPECT_FALSE(std::has_single_bit(r.significand)) << distance;
      if (distance > 63) {
        EXPECT_TRUE(IsRoundedToOdd(r)) << distance;
      }
    }
  }
}

}  // namespace
}  // namespace numsim
