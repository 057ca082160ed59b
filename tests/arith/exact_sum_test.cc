// The sum without rounding, against 128-bit integers and against a sum in signed digits.
#include "numsim/arith/shared/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode_plan.h"
#include "tests/reference/inputs.h"

namespace numsim {
namespace {

__extension__ using Int128 = __int128;

Unrounded SignedNumber(int64_t significand, int exponent) {
  Unrounded x;
  x.negative = significand < 0;
  x.significand = static_cast<uint64_t>(significand < 0 ? -significand : significand);
  x.exponent = exponent;
  return x;
}
Unrounded Zero(bool negative) {
  Unrounded x;
  x.negative = negative;
  return x;
}
Unrounded Infinity(bool negative) {
  Unrounded x;
  x.kind = NumberKind::kInfinity;
  x.negative = negative;
  return x;
}
Unrounded Nan() {
  Unrounded x;
  x.kind = NumberKind::kNan;
  return x;
}

ExactSum SumOf(const std::vector<Unrounded>& addends) {
  ExactSum sum;
  for (const Unrounded& x : addends) sum.Add(x);
  return sum;
}

// A number in digits of base 2^32, each with a sign of its own; carries are settled on reading.
class DigitSum {
 public:
  void Add(const Unrounded& x) {
    const int place = x.exponent - kLowest;
    const unsigned shift = static_cast<unsigned>(place % 32);
    __extension__ const auto shifted = static_cast<unsigned __int128>(x.significand) << shift;
    for (int i = 0; i < 3; ++i) {
      const auto digit = static_cast<int64_t>(static_cast<uint32_t>(shifted >> (32 * i)));
      digits_[static_cast<size_t>(place / 32 + i)] += x.negative ? -digit : digit;
    }
  }

  // Whether `result` is this sum: equal, or cut to at least 62 bits with the lowest set.
  testing::AssertionResult Is(const Unrounded& result) const {
    bool negative = false;
    const std::vector<bool> bits = Bits(&negative);
    const auto top = std::find(bits.rbegin(), bits.rend(), true);
    if (top == bits.rend()) {
      return result.significand == 0 ? testing::AssertionSuccess()
                                     : testing::AssertionFailure() << "the sum is zero";
    }
    if (result.kind != NumberKind::kFinite || result.negative != negative) {
      return testing::AssertionFailure() << "wrong kind or sign";
    }
    const int cut = result.exponent - kLowest;  // bits below the result's
    uint64_t expected = 0;
    bool rest = false;
    for (int i = static_cast<int>(bits.size()) - 1; i >= 0; --i) {
      if (i < cut) {
        rest = rest || bits[static_cast<size_t>(i)];
      } else {
        if (expected >> 63 != 0) return testing::AssertionFailure() << "exponent too low";
        expected = 2 * expected + (bits[static_cast<size_t>(i)] ? 1 : 0);
      }
    }
    if (cut < 0) expected = cut > -63 ? expected << -cut : 0;
    if (rest && std::bit_width(result.significand) < Unrounded::kKeptBits) {
      return testing::AssertionFailure() << "cut to " << std::bit_width(result.significand);
    }
    if (result.significand >> 63 == 0 && result.significand == (expected | (rest ? 1 : 0))) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << result.significand << ", not " << expected << "+" << rest;
  }

 private:
  static constexpr int kLowest = ExactSum::kLowest;

  // Bits of the magnitude, lowest first.
  std::vector<bool> Bits(bool* negative) const {
    std::vector<int64_t> digits = digits_;
    Settle(digits);
    *negative = digits.back() < 0;
    if (*negative) {
      for (int64_t& digit : digits) digit = -digit;
      Settle(digits);
    }
    std::vector<bool> bits;
    for (int64_t digit : digits) {
      for (int i = 0; i < 32; ++i) bits.push_back((digit >> i & 1) != 0);
    }
    return bits;
  }
  // Leaves every digit but the last in 0 .. 2^32 - 1.
  static void Settle(std::vector<int64_t>& digits) {
    for (size_t i = 0; i + 1 < digits.size(); ++i) {
      digits[i + 1] += digits[i] >> 32;
      digits[i] &= 0xFFFFFFFF;
    }
  }

  std::vector<int64_t> digits_ = std::vector<int64_t>(52, 0);
};

// Numbers of any size in the range: multiples of 2^-704 below 2^704.
std::vector<Unrounded> RandomNumbers(size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  std::vector<Unrounded> numbers;
  while (numbers.size() < n) {
    const int width = 1 + static_cast<int>(random.Below(62));
    const auto significand = static_cast<int64_t>(random.Next() >> (64 - width));
    const auto room = static_cast<uint64_t>(ExactSum::kHighest - ExactSum::kLowest - width);
    const int exponent = ExactSum::kLowest + static_cast<int>(random.Below(room + 1));
    if (significand == 0) continue;
    numbers.push_back(SignedNumber(random.Below(2) == 0 ? significand : -significand, exponent));
  }
  return numbers;
}

bool Same(const Unrounded& a, const Unrounded& b) {
  return a.kind == b.kind && a.negative == b.negative && a.exponent == b.exponent &&
         a.significand == b.significand;
}

TEST(ExactSum, EqualsASumOf128BitIntegers) {
  oracle::TestRandom random(1);
  for (int round = 0; round < 2000; ++round) {
    const int scale = static_cast<int>(random.Below(1300)) + ExactSum::kLowest;
    ExactSum sum;
    Int128 expected = 0;
    for (uint64_t i = 0, n = random.Below(40); i < n; ++i) {
      auto significand = static_cast<int64_t>(random.Next() >> (24 + random.Below(38)));
      if (random.Below(2) == 0) significand = -significand;
      const int exponent = static_cast<int>(random.Below(16));
      sum.Add(SignedNumber(significand, scale + exponent));
      expected += static_cast<Int128>(significand) << exponent;
    }
    const Unrounded got = sum.Result();
    const Int128 magnitude = expected < 0 ? -expected : expected;
    ASSERT_EQ(got.kind, NumberKind::kFinite);
    if (magnitude == 0) {
      ASSERT_EQ(got.significand, 0u);
      continue;
    }
    ASSERT_EQ(got.negative, expected < 0);
    Int128 value = got.significand;
    for (int e = got.exponent; e > scale; --e) value *= 2;
    for (int e = got.exponent; e < scale && value % 2 == 0; ++e) value /= 2;
    ASSERT_TRUE(value == magnitude) << "round " << round;
  }
}

TEST(ExactSum, EqualsASumInSignedDigitsOverTheWholeRange) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ExactSum sum;
    DigitSum expected;
    for (const Unrounded& x : RandomNumbers(1 + seed % 60, seed)) {
      sum.Add(x);
      expected.Add(x);
      ASSERT_TRUE(expected.Is(sum.Result())) << "seed " << seed;
    }
  }
}

TEST(ExactSum, OrderNeverMatters) {
  oracle::TestRandom random(2);
  std::vector<Unrounded> numbers = RandomNumbers(200, 3);
  for (const Unrounded& x : RandomNumbers(200, 4)) {  // pairs that cancel
    numbers.push_back(x);
    numbers.push_back(x);
    numbers.back().negative = !x.negative;
  }
  numbers.push_back(Zero(true));
  numbers.push_back(Zero(false));
  const Unrounded expected = SumOf(numbers).Result();
  for (int round = 0; round < 100; ++round) {
    for (size_t i = numbers.size() - 1; i > 0; --i) {
      std::swap(numbers[i], numbers[random.Below(i + 1)]);
    }
    ASSERT_TRUE(Same(SumOf(numbers).Result(), expected)) << "round " << round;
  }
}

TEST(ExactSum, OrderOfSpecialValuesNeverMatters) {
  const std::vector<Unrounded> kinds = {SignedNumber(3, -2),
                                        SignedNumber(-3, -2),
                                        Zero(true),
                                        Zero(false),
                                        Infinity(false),
                                        Infinity(true),
                                        Nan()};
  for (const Unrounded& a : kinds) {
    for (const Unrounded& b : kinds) {
      for (const Unrounded& c : kinds) {
        for (bool zero_negative : {false, true}) {
          const ExactSum one = SumOf({a, b, c}), other = SumOf({c, a, b}), third = SumOf({b, a, c});
          const Unrounded result = one.Result(zero_negative);
          EXPECT_TRUE(Same(result, other.Result(zero_negative)));
          EXPECT_TRUE(Same(result, third.Result(zero_negative)));
          EXPECT_EQ(one.Invalid(), other.Invalid());
        }
      }
    }
  }
}

TEST(ExactSum, TinyNumberSurvivesTheCancellationOfHugeOnes) {
  const Unrounded tiny = SignedNumber(1, ExactSum::kLowest);
  const Unrounded huge = SignedNumber(1, ExactSum::kHighest - 1);
  const Unrounded minus_huge = SignedNumber(-1, ExactSum::kHighest - 1);
  const Unrounded left = SumOf({huge, tiny, minus_huge}).Result();
  EXPECT_FALSE(left.negative);
  DigitSum expected;
  expected.Add(tiny);
  EXPECT_TRUE(expected.Is(left));
  EXPECT_FALSE(SumOf({huge, minus_huge}).Result().negative);
  EXPECT_EQ(SumOf({huge, minus_huge}).Result().significand, 0u);
}

TEST(ExactSum, CarriesAndBorrowsRunThroughTheWholeWidth) {
  const Unrounded tiny = SignedNumber(1, ExactSum::kLowest),
                  minus_tiny = SignedNumber(-1, ExactSum::kLowest);
  ExactSum sum;
  DigitSum expected;
  const auto add = [&sum, &expected](const Unrounded& x) {
    sum.Add(x);
    expected.Add(x);
    ASSERT_TRUE(expected.Is(sum.Result()));
  };
  for (const Unrounded& x : {SignedNumber(1, 703), minus_tiny, minus_tiny, tiny, tiny, tiny})
    add(x);
  for (const Unrounded& x : {SignedNumber(-1, 703), minus_tiny, minus_tiny, tiny, tiny}) add(x);
  const Unrounded large = SignedNumber(0x3FFFFFFFFFFFFFFF, ExactSum::kHighest - 62);
  for (int i = 0; i < 5000; ++i) sum.Add(large);  // beyond 2^kHighest: only addends are bounded
  for (int i = 0; i < 5000; ++i) expected.Add(large);
  ASSERT_TRUE(expected.Is(sum.Result()));
}

// The part that was cut decides a tie and a directed mode: the lowest bit tells that there was
// something.
TEST(ExactSum, CutBitsDecideTies) {
  const FormatSpec fp32 = ParseFormat("fp32").spec;
  const EncodePlan nearest = MakeEncodePlan(fp32);
  const EncodePlan up = MakeEncodePlan(fp32, {.mode = RoundingMode::kUp});
  const Unrounded one = SignedNumber(1, 0), half_ulp = SignedNumber(1, -24),
                  minus_ulp = SignedNumber(-1, -23);
  const auto encoded = [](const EncodePlan& to, const std::vector<Unrounded>& addends) {
    return EncodeUnrounded(to, SumOf(addends).Result());
  };
  EXPECT_EQ(encoded(nearest, {one, half_ulp}), (Rounded{0x3F800000, kInexact}));
  EXPECT_EQ(encoded(nearest, {one, half_ulp, SignedNumber(1, -700)}),
            (Rounded{0x3F800001, kInexact}));
  EXPECT_EQ(encoded(nearest, {one, half_ulp, SignedNumber(-1, -700)}),
            (Rounded{0x3F800000, kInexact}));
  EXPECT_EQ(encoded(nearest, {one, half_ulp, half_ulp}), (Rounded{0x3F800001, 0}));
  EXPECT_EQ(encoded(up, {one, SignedNumber(1, -704)}), (Rounded{0x3F800001, kInexact}));
  EXPECT_EQ(encoded(up, {one, SignedNumber(-1, -704)}), (Rounded{0x3F800000, kInexact}));
  EXPECT_EQ(encoded(nearest, {one, half_ulp, minus_ulp, SignedNumber(-1, 0)}),
            (Rounded{0xB3800000, 0}));
}

TEST(ExactSum, InfinitiesAndNan) {
  const Unrounded one = SignedNumber(1, 0);
  for (bool negative : {false, true}) {
    const ExactSum sum =
        SumOf({one, Infinity(negative), SignedNumber(-5, 600), Infinity(negative)});
    EXPECT_EQ(sum.Result().kind, NumberKind::kInfinity);
    EXPECT_EQ(sum.Result().negative, negative);
    EXPECT_FALSE(sum.Invalid());
  }
  const ExactSum opposite = SumOf({Infinity(false), one, Infinity(true)});
  EXPECT_EQ(opposite.Result().kind, NumberKind::kNan);
  EXPECT_TRUE(opposite.Invalid());
  const ExactSum nan = SumOf({one, Nan(), Infinity(true)});
  EXPECT_EQ(nan.Result().kind, NumberKind::kNan);
  EXPECT_FALSE(nan.Invalid());
}

TEST(ExactSum, SignOfAnExactZeroFollowsItsAddends) {
  const auto negative = [](const std::vector<Unrounded>& addends, bool zero_negative) {
    const Unrounded result = SumOf(addends).Result(zero_negative);
    EXPECT_EQ(result.significand, 0u);
    EXPECT_EQ(result.kind, NumberKind::kFinite);
    return result.negative;
  };
  for (bool zero_negative : {false, true}) {
    EXPECT_FALSE(negative({}, zero_negative));
    EXPECT_FALSE(negative({Zero(false)}, zero_negative));
    EXPECT_FALSE(negative({Zero(false), Zero(false)}, zero_negative));
    EXPECT_TRUE(negative({Zero(true)}, zero_negative));
    EXPECT_TRUE(negative({Zero(true), Zero(true), Zero(true)}, zero_negative));
    EXPECT_EQ(negative({Zero(true), Zero(false)}, zero_negative), zero_negative);
    EXPECT_EQ(negative({SignedNumber(1, 5), SignedNumber(-1, 5)}, zero_negative), zero_negative);
    EXPECT_EQ(negative({Zero(true), SignedNumber(1, 5), SignedNumber(-1, 5)}, zero_negative),
              zero_negative);
    EXPECT_EQ(negative({Zero(false), SignedNumber(1, 5), SignedNumber(-1, 5)}, zero_negative),
              zero_negative);
  }
}

}  // namespace
}  // namespace numsim
