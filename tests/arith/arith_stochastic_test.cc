// Stochastic rounding of arithmetic: not sampled, but the exact number of random words that round
// away from zero. That number is found by halving, for the library is monotone in the word.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/arith/arithmetic_judge.h"
#include "tests/arith/operand_codes.h"
#include "tests/reference/format_param.h"

namespace numsim {
namespace {

using oracle::FindFormat;
using oracle::Format;
using oracle::Operation;

std::vector<oracle::Setting> EveryVariant() {
  std::vector<oracle::Setting> settings;
  for (oracle::Variant variant : {oracle::Variant::kA, oracle::Variant::kB, oracle::Variant::kC}) {
    for (int bits : {1, 8, 16, 32}) {
      settings.push_back({oracle::Mode::kStochastic, oracle::Policy::kNonsaturate, variant, bits});
    }
  }
  return settings;
}

class StochasticArithmetic : public testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(,
                         StochasticArithmetic,
                         testing::Values(FindFormat("e4m3fn"),
                                         FindFormat("e5m2"),
                                         FindFormat("binary8p1se"),
                                         FindFormat("e8m0fnu"),
                                         FindFormat("int8"),
                                         FindFormat("bnb-e4m3"),
                                         FindFormat("e2m1fn"),
                                         FindFormat("fp16"),
                                         FindFormat("bf16"),
                                         FindFormat("fp32")),
                         oracle::ParamName);

TEST_P(StochasticArithmetic, RoundsAwayForTheExactNumberOfWords) {
  const Format& f = GetParam();
  ArithmeticJudge judge(f.name, EveryVariant(), TininessRules::kAfterRounding);
  oracle::TestRandom random(1);
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << f.bits) - 1);
  const uint32_t one = static_cast<uint32_t>(f.bias) << f.mantissa_bits;
  for (int i = 0; i < 120; ++i) {
    const uint32_t a = RandomCode(random, f, one & mask);
    const uint32_t b = RandomCode(random, f, a);
    const OperandCodes codes = {a, b, RandomCode(random, f, a)};
    for (Operation operation : oracle::kOperations) judge.CheckWordCount(operation, codes);
  }
}

// Products of the smallest values with numbers below 1: down to 2^-40 of the smallest, where the
// count falls to 0, and none of them may stay up.
TEST_P(StochasticArithmetic, RoundsAwayForTheExactNumberOfWordsBelowTheSmallestValue) {
  const Format& f = GetParam();
  ArithmeticJudge judge({f.name, "fp32", f.name}, f.name, EveryVariant());
  for (uint32_t smallest : {1u, 2u, 3u}) {
    for (int exponent = 0; exponent >= -40; --exponent) {
      for (uint32_t mantissa : {0u, 0x400000u, 0x2AAAABu, 0x7FFFFFu}) {
        const uint32_t factor = (static_cast<uint32_t>(127 + exponent) << 23) | mantissa;
        judge.CheckWordCount(Operation::kMultiply, {smallest, factor});
      }
    }
  }
}

// 2^-9 / 3 in e4m3fn: a third of the smallest value.
TEST(StochasticArithmeticByHand, CountsTheWordsOfAThirdOfTheSmallestValue) {
  const FormatSpec format = {.exponent_bits = 4,
                             .mantissa_bits = 3,
                             .bias = 7,
                             .nan = Nan::kAllOnes,
                             .overflow_to = OverflowTo::kNan};
  const EncodePlan plan = MakeEncodePlan(
      format,
      {.mode = RoundingMode::kStochastic, .variant = StochasticVariant::kA, .random_bits = 8});
  int away = 0;
  for (uint32_t word = 0; word < 256; ++word) {
    const Rounded quotient = Divide({format, 0x01}, {format, 0x44}, plan, word);
    EXPECT_EQ(quotient.flags, kInexact | kUnderflow);
    ASSERT_LE(quotient.code, 1u);
    away += static_cast<int>(quotient.code);
  }
  EXPECT_EQ(away, 85);  // floor(256 / 3)
}

}  // namespace
}  // namespace numsim
