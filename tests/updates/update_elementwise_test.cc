// Rules without state: naive and stochastic.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/updates/update_rule.h"
#include "tests/reference/updates/update_exact.h"
#include "tests/reference/updates/update_reference.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Apply;
using update_cases::Arrays;
using update_cases::Case;
using update_cases::DrawHard;
using update_cases::DrawNormal;
using update_cases::ExpectAsDefined;
using update_cases::MakeCase;
using update_cases::SignedFormats;
using update_reference::Result;
using update_reference::Storage;
using update_reference::StorageOf;

constexpr std::array kRates = {1.0f, 0.3f, 0x1p-10f, 1e-6f};

float MovedOne(const char* format, const char* rule, float weight, float update, float rate) {
  return Apply(MakeCase(format, rule, {{weight}, {update}}, rate)).weights[0];
}

TEST(NaiveUpdate, WorkedExampleOfTheNoteVanishes) {
  const Result result = Apply(MakeCase("e4m3fn", "naive", {{0.75f}, {0.03f}}, 1));
  EXPECT_EQ(result.weights[0], 0.75f);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kBelowMinStep);
  EXPECT_EQ(result.outcome.moved, 0u);
  EXPECT_EQ(result.outcome.achieved_norm, 0);
  EXPECT_FLOAT_EQ(static_cast<float>(result.outcome.target_norm), 0.03f);
  // The midpoint 0.78125 goes to the even code, 0.75; beyond it is the next value.
  EXPECT_EQ(MovedOne("e4m3fn", "naive", 0.75f, 0.03125f, 1), 0.75f);
  EXPECT_EQ(MovedOne("e4m3fn", "naive", 0.75f, 0.03126f, 1), 0.8125f);
  EXPECT_EQ(MovedOne("e4m3fn", "naive", 0.8125f, 0.03125f, 1), 0.875f);
}

TEST(NaiveUpdate, RoundsProductAndSumToFloat32First) {
  // 1 + (2^-8 + 2^-32): float32 makes a tie of it, which goes to 1.
  EXPECT_EQ(MovedOne("bf16", "naive", 1, 0x1.000002p-8f, 1), 1.0f);
  EXPECT_EQ(MovedOne("bf16", "naive", 1, 0x1.0002p-8f, 1), 1.0078125f);
  // (2^-4 + 2^-21)^2 = 2^-8 + 2^-24 + 2^-42: without the last part the sum is a tie of float32,
  // which goes to a tie of bf16, which goes to 1.
  EXPECT_EQ(MovedOne("bf16", "naive", 1, 0x1.00008p-4f, 0x1.00008p-4f), 1.0f);
}

TEST(NaiveUpdate, IsAsDefinedInEveryFormat) {
  for (const std::string& format : SignedFormats()) {
    for (const float rate : kRates) {
      ExpectAsDefined(MakeCase(format, "naive", DrawHard(format, rate, 250, 11), rate));
    }
    ExpectAsDefined(MakeCase(format, "naive", DrawNormal(format, 250, 12), 0.01f));
  }
}

TEST(NaiveUpdate, IsAsDefinedWithoutNegativeNumbers) {
  for (const char* format : {"e8m0fnu", "ue5m3:zero=unsigned", "binary8p3uf"}) {
    for (const char* rule : {"naive", "stochastic:8"}) {
      ExpectAsDefined(MakeCase(format, rule, DrawHard(format, 0.3f, 250, 14), 0.3f));
    }
  }
}

TEST(NaiveUpdate, StepGrowsWithTheLearningRate) {
  for (const char* format : {"e4m3fn", "fp16", "bf16", "bnb-e4m3"}) {
    const Arrays arrays = DrawNormal(format, 1000, 15);
    std::vector<float> before(arrays.weights.size(), 0.0f);
    for (float rate = 1e-5f; rate < 1; rate *= 1.7f) {
      const Result result = Apply(MakeCase(format, "naive", arrays, rate));
      for (size_t i = 0; i < before.size(); ++i) {
        const float step = std::abs(result.weights[i] - arrays.weights[i]);
        ASSERT_GE(step, before[i]) << format << " rate " << rate << " element " << i;
        before[i] = step;
      }
    }
  }
}

TEST(NaiveUpdate, WeightDecayIsRoundedIntoTheUpdate) {
  for (const std::string format : {"e4m3fn", "bf16", "fp32", "int8"}) {
    for (const float decay : {0.1f, 1.0f, -0.5f, 1e-8f}) {
      Case c = MakeCase(format, "naive", DrawNormal(format, 250, 13), 0.3f);
      c.weight_decay = decay;
      ExpectAsDefined(c);
    }
  }
  // u - 0.25 w = 0.0625 - 0.25 = -0.1875, exactly: 1 - 0.1875 is a tie of 0.8125 and itself.
  Case c = MakeCase("e4m3fn", "naive", {{1}, {0.0625f}}, 1);
  c.weight_decay = 0.25f;
  const Result result = Apply(c);
  EXPECT_EQ(result.weights[0], 0.8125f);
  EXPECT_EQ(result.outcome.target_norm, 0.1875);
  EXPECT_EQ(result.outcome.target_projection, 0.1875 * 0.1875);
  EXPECT_EQ(result.outcome.achieved_projection, 0.1875 * 0.1875);
}

TEST(NaiveUpdate, OutcomeOfAHandMadeStep) {
  // Gaps of e4m3fn: 0.125 above 1, 32 below 448.
  const Arrays arrays = {{1, 1, -2, 448, 0}, {0.125f, 0.03f, -0.25f, 100, 0}};
  const Result result = Apply(MakeCase("e4m3fn", "naive", arrays, 1));
  EXPECT_EQ(result.weights, (std::vector<float>{1.125f, 1, -2.25f, 448, 0}));
  EXPECT_EQ(result.outcome.status, UpdateStatus::kSaturated);
  EXPECT_EQ(result.outcome.moved, 2u);
  EXPECT_EQ(result.outcome.saturated, 1u);
  EXPECT_EQ(result.outcome.achieved_norm, std::sqrt(0.125 * 0.125 + 0.0625));
  EXPECT_EQ(result.outcome.achieved_projection, 0.125 * 0.125 + 0.0625);
  EXPECT_EQ(result.outcome.alpha, 1);
  EXPECT_EQ(result.outcome.matched, 0);
  EXPECT_EQ(result.outcome.matched_target, 0);
  EXPECT_EQ(result.outcome.passes, 0);
}

TEST(StochasticUpdate, IsAsDefinedInEveryFormat) {
  for (const std::string& format : SignedFormats()) {
    for (const char* rule : {"stochastic", "stochastic:7", "stochastic:16", "stochastic:1"}) {
      const float rate = rule[10] == '\0' ? 0.3f : 0x1p-10f;
      ExpectAsDefined(MakeCase(format, rule, DrawHard(format, rate, 250, 21), rate));
    }
    ExpectAsDefined(MakeCase(format, "stochastic", DrawNormal(format, 250, 22), 1e-4f));
  }
}

TEST(StochasticUpdate, WeightDecayIsRoundedIntoTheUpdate) {
  for (const std::string format : {"e4m3fn", "bf16", "fp32"}) {
    Case c = MakeCase(format, "stochastic:8", DrawNormal(format, 250, 23), 0.01f);
    c.weight_decay = 0.1f;
    ExpectAsDefined(c);
  }
}

// For one weight and update, one element for each of many words of 8 bits.
constexpr size_t kCopies = 4096;

// The mean over all 256 words of w' - w, exactly; fails unless each of them occurs, and unless
// elements with equal words move alike.
class EveryWord {
 public:
  EveryWord(const char* format, float weight, float update, float rate) {
    Case c = MakeCase(format,
                      "stochastic:8",
                      {std::vector<float>(kCopies, weight), std::vector<float>(kCopies, update)},
                      rate);
    const Result result = Apply(c);
    by_word_.fill(NAN);
    for (size_t i = 0; i < kCopies; ++i) {
      float& value = by_word_[RandomBits(c.random, i, 8)];
      EXPECT_TRUE(std::isnan(value) || value == result.weights[i]);
      value = result.weights[i];
    }
    for (const float value : by_word_) {
      EXPECT_FALSE(std::isnan(value)) << "a word is missing";
      sum_ += static_cast<double>(value) - static_cast<double>(weight);
    }
  }

  double Mean() const { return sum_ / 256; }
  long WordsWith(float value) const { return std::count(by_word_.begin(), by_word_.end(), value); }

 private:
  std::array<float, 256> by_word_;
  double sum_ = 0;
};

TEST(StochasticUpdate, MeanOverAllWordsIsTheStepInEveryBinade) {
  for (const char* format : {"e4m3fn", "e5m2", "e2m1fn", "fp16", "bf16", "int8", "e4m3fnuz"}) {
    const Storage& storage = StorageOf(format);
    const int64_t binade = int64_t{1} << storage.grid().format().mantissa_bits;
    const int64_t end = storage.grid().end();
    const int64_t stride = std::max<int64_t>(binade, end / binade / 12 * binade);
    for (int64_t position = 0; position + 1 < end; position += stride) {
      const double value = storage.grid().Value(position);
      const double up = storage.grid().Value(position + 1) - value;
      const double down = position > 0 ? value - storage.grid().Value(position - 1) : up;
      // Multiples of gap / 256: nothing is cut off.
      for (const double step : {up / 256, up * 77 / 256, -down / 256, -down * 0.75}) {
        for (const double sign : {1.0, -1.0}) {
          SCOPED_TRACE(std::string(format) + " " + std::to_string(position));
          const auto weight = static_cast<float>(sign * value);
          const auto update = static_cast<float>(sign * step * 0x1p10);
          if (std::ldexp(static_cast<double>(update), -10) != sign * step) continue;
          EXPECT_EQ(EveryWord(format, weight, update, 0x1p-10f).Mean(), sign * step);
        }
      }
    }
  }
}

TEST(StochasticUpdate, MeanIsTheStepFarBelowTheSmallestSubnormal) {
  // 2^-9 in e4m3fn, 2^-24 in fp16, 1 in int8.
  EXPECT_EQ(EveryWord("e4m3fn", 0, 0x1p-7f, 0x1p-10f).Mean(), 0x1p-17);
  EXPECT_EQ(EveryWord("e4m3fn", 0, -0x1.8p-6f, 0x1p-10f).Mean(), -0x1.8p-16);
  EXPECT_EQ(EveryWord("fp16", 0, 0x1p-22f, 0x1p-10f).Mean(), 0x1p-32);
  EXPECT_EQ(EveryWord("int8", 0, 0x1.4p-6f, 1).Mean(), 0x1.4p-6);
  // The step itself is below float32's range: 2^-141 is the last bit of bf16's 2^-133 by 2^-8.
  EXPECT_EQ(EveryWord("bf16", 0, 0x1p-41f, 0x1p-100f).Mean(), 0x1p-141);
  EXPECT_EQ(EveryWord("e4m3:bias=147", 0, 0x1p-77f, 0x1p-80f).Mean(), 0x1p-157);
}

TEST(StochasticUpdate, MeanIsTheStepInTheSubnormalGap) {
  // From 7 2^-11 to 2^-6 = 32 2^-11: a gap of 25 2^-11.
  const float weight = 0x7p-11f;
  EXPECT_EQ(EveryWord("bnb-e4m3", weight, 0x19p-17f, 1).Mean(), 0x19p-17);
  const EveryWord third("bnb-e4m3", weight, 0x8p-11f, 1);  // 8 / 25 of 256 words: 81.92
  EXPECT_EQ(third.WordsWith(0x1p-6f), 81);
  EXPECT_EQ(third.WordsWith(weight), 175);
}

TEST(StochasticUpdate, CutsFinerProbabilitiesTowardZero) {
  // A step of less than 2^-8 gaps away from zero is never taken, one toward zero too often.
  EXPECT_EQ(EveryWord("bf16", 1, 0x1.fffffep-16f, 1).Mean(), 0);
  EXPECT_EQ(EveryWord("bf16", 1, 0x1p-15f, 1).WordsWith(1.0078125f), 1);
  EXPECT_EQ(EveryWord("bf16", -1, -0x1.fffffep-15f, 1).WordsWith(-1.0078125f), 1);
  EXPECT_EQ(EveryWord("bf16", 1.5f, -0x1p-20f, 1).WordsWith(1.4921875f), 1);
}

TEST(StochasticUpdate, SeesAStepThatEvenAFloat64SumLoses) {
  // 1 - 2^-60 lies below 1: of 256 words, floor(256 (1 - 2^-52)) = 255 round it up.
  const EveryWord tiny("bf16", 1, -0x1p-30f, 0x1p-30f);
  EXPECT_EQ(tiny.WordsWith(1), 255);
  EXPECT_EQ(tiny.WordsWith(0.99609375f), 1);
  EXPECT_EQ(EveryWord("fp32", -1, 0x1p-100f, 0x1p-100f).WordsWith(-0x1.fffffep-1f), 1);
  EXPECT_EQ(EveryWord("e5m2", 1024, -0x1p-149f, 0x1p-149f).WordsWith(896), 1);
}

TEST(StochasticUpdate, SeesAStepOfTwoToTheMinusFortyOfTheWeight) {
  // 2^-17 of a gap of fp32: 2^15 of 2^32 words move, and a float32 sum would move none.
  const size_t n = size_t{1} << 20;
  const Case c = MakeCase(
      "fp32", "stochastic", {std::vector<float>(n, 1), std::vector<float>(n, 0x1p-20f)}, 0x1p-20f);
  const Result result = Apply(c);
  uint64_t expected = 0;
  for (size_t i = 0; i < n; ++i) {
    const bool moves = RandomWord(c.random, i) >= 0u - (1u << 15);
    expected += moves;
    ASSERT_EQ(result.weights[i], moves ? 0x1.000002p0f : 1.0f) << i;
  }
  EXPECT_GT(expected, 0u);
  EXPECT_EQ(result.outcome.moved, expected);
}

TEST(StochasticUpdate, DoesNotRoundTheProductBeforeTheSum) {
  // 3 x 0x1.555556p-10 = 2^-8 (1 + 2^-25), in float32 2^-8: 1 less the former lies between the two
  // values below 1, 1 less the latter is one of them.
  const size_t n = 4096;
  const Case c = MakeCase("bf16",
                          "stochastic:1",
                          {std::vector<float>(n, 1), std::vector<float>(n, -0x1.555556p-10f)},
                          3);
  const Result result = Apply(c);
  for (size_t i = 0; i < n; ++i) {
    const bool away = RandomBits(c.random, i, 1) == 1;
    ASSERT_EQ(result.weights[i], away ? 0x1.fep-1f : 0x1.fcp-1f) << i;
  }
}

TEST(StochasticUpdate, DrawsTheWordOfItsElementAndStream) {
  const size_t n = 5000;
  const std::vector<float> ones(n, 1), halves(n, 0x1p-8f);
  std::vector<std::vector<float>> results;
  for (const RandomStream stream : {RandomStream{1, 2}, RandomStream{1, 3}, RandomStream{2, 2}}) {
    Case c = MakeCase("bf16", "stochastic:8", {ones, halves}, 1);
    c.random = stream;
    c.rows = 5;
    c.cols = 1000;
    results.push_back(Apply(c).weights);
    for (size_t i = 0; i < n; ++i) {
      const bool moves = RandomBits(stream, i, 8) >= 128;
      ASSERT_EQ(results.back()[i], moves ? 1.0078125f : 1.0f) << i;
    }
  }
  EXPECT_NE(results[0], results[1]);
  EXPECT_NE(results[0], results[2]);
}

}  // namespace
}  // namespace numsim
