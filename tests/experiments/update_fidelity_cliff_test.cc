// Where naive rounding stops: the search and the closed forms against brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/update_fidelity.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"

namespace numsim::experiments::update_fidelity {
namespace {

struct Drawn {
  FormatSpec format;
  std::vector<float> weights, update;
};

Drawn Draw(const std::string& format, Keys keys, size_t elements, uint64_t seed = 0) {
  Drawn drawn{ParseFormat(format).spec, std::vector<float>(elements), {}};
  Arrays arrays = DrawArrays(keys, seed, elements);
  FakeQuantize(MakeEncodePlan(drawn.format), arrays.initial, drawn.weights);
  drawn.update = std::move(arrays.update);
  return drawn;
}

// Rounds the sum with the scalar rule.
float NaiveStep(const Drawn& drawn, size_t i, float lr) {
  const float change = lr * drawn.update[i];
  const float sum = drawn.weights[i] + change;
  return Decode(drawn.format, Encode(drawn.format, sum, {}, Overflow::kSaturate)) -
         drawn.weights[i];
}

size_t Movers(const Drawn& drawn, float lr) {
  size_t movers = 0;
  for (size_t i = 0; i < drawn.weights.size(); ++i) movers += NaiveStep(drawn, i, lr) != 0;
  return movers;
}

double NormRatio(const Drawn& drawn, float lr) {
  double step = 0, update = 0;
  for (size_t i = 0; i < drawn.weights.size(); ++i) {
    step += std::pow(static_cast<double>(NaiveStep(drawn, i, lr)), 2);
    update += std::pow(static_cast<double>(drawn.update[i]), 2);
  }
  return std::sqrt(step / update) / static_cast<double>(lr);
}

float NextUp(float x) { return std::nextafter(x, std::numeric_limits<float>::infinity()); }

TEST(NaiveLimits, NothingMovesUpToTheUnmovedRateAndSomethingAtTheNextFloat) {
  for (const char* const format : {"e4m3fn", "e5m2", "fp16", "bf16"}) {
    for (const Keys keys : {Keys::kSame, Keys::kIndependent}) {
      const Drawn drawn = Draw(format, keys, 3000);
      const NaiveLimits limits = MeasureNaiveLimits(drawn.format, drawn.weights, drawn.update);
      EXPECT_EQ(Movers(drawn, limits.unmoved), 0u) << format;
      EXPECT_GT(Movers(drawn, NextUp(limits.unmoved)), 0u) << format;
    }
  }
}

TEST(NaiveLimits, NormCrossesHalfBetweenNeighbouringFloats) {
  for (const char* const format : {"e4m3fn", "bf16"}) {
    for (const Keys keys : {Keys::kSame, Keys::kIndependent}) {
      const Drawn drawn = Draw(format, keys, 3000);
      const NaiveLimits limits = MeasureNaiveLimits(drawn.format, drawn.weights, drawn.update);
      EXPECT_LT(NormRatio(drawn, limits.half_norm), 0.5) << format;
      EXPECT_GE(NormRatio(drawn, NextUp(limits.half_norm)), 0.5) << format;
    }
  }
}

TEST(NaiveLimits, AreNaNWhereNothingEverMoves) {
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  const std::vector<float> weights = {448, -448, 1}, update = {1, -1, 0};
  EXPECT_TRUE(std::isnan(MeasureNaiveLimits(format, weights, update).unmoved));
  EXPECT_TRUE(std::isinf(LeastThreshold(format, weights, update)));
}

TEST(LeastThreshold, IsTheRateAtWhichTheArraysBeginToMove) {
  for (const char* const format : {"e4m3fn", "e5m2", "fp16", "bf16", "e2m1fn"}) {
    for (const Keys keys : {Keys::kSame, Keys::kIndependent}) {
      const Drawn drawn = Draw(format, keys, 3000);
      const double threshold = LeastThreshold(drawn.format, drawn.weights, drawn.update);
      const double measured = static_cast<double>(
          MeasureNaiveLimits(drawn.format, drawn.weights, drawn.update).unmoved);
      EXPECT_NEAR(measured / threshold, 1, std::ldexp(1.0, drawn.format.mantissa_bits - 21))
          << format;
    }
  }
}

// The gap below a power of two is half of that above; a zero moves either way.
TEST(LeastThreshold, TakesTheGapOnTheSideOfTheUpdate) {
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  const auto threshold = [&](float weight, float update) {
    return LeastThreshold(format, std::vector<float>{weight}, std::vector<float>{update});
  };
  EXPECT_EQ(threshold(1, 1), 0x1p-4);
  EXPECT_EQ(threshold(1, -1), 0x1p-5);
  EXPECT_EQ(threshold(-1, 2), 0x1p-6);
  EXPECT_EQ(threshold(-1, -2), 0x1p-5);
  EXPECT_EQ(threshold(0, -1), 0x1p-10);
  EXPECT_EQ(threshold(448, -1), 16);
}

TEST(NormalTail, AgreesWithTheComplementaryErrorFunction) {
  for (double z = 0; z < 36; z += 0.0625) {
    EXPECT_NEAR(NormalTail(z) / (0.5 * std::erfc(z / std::sqrt(2.0))), 1, 1e-12) << z;
  }
  EXPECT_EQ(NormalTail(100), 0);
}

// Counts in a large draw, within 5 standard deviations.
TEST(MovedShareExpected, AgreesWithCounting) {
  constexpr size_t kElements = 200000;
  for (const char* const format : {"e4m3fn", "e5m2", "fp16", "bf16", "e2m1fn"}) {
    for (const Keys keys : {Keys::kSame, Keys::kIndependent}) {
      const Drawn drawn = Draw(format, keys, kElements, 3);
      for (const float lr : {1e-4f, 3e-4f, 1e-3f, 3e-3f, 1e-2f, 4e-2f, 0.3f}) {
        const double expected =
            kElements *
            MovedShareExpected(drawn.format, keys == Keys::kSame, static_cast<double>(lr));
        const double counted = static_cast<double>(Movers(drawn, lr));
        const double deviation = std::sqrt(expected * std::max(0.0, 1 - expected / kElements));
        EXPECT_NEAR(counted, expected, 5 * deviation + 1)
            << format << " " << ToString(keys) << " lr " << lr;
      }
    }
  }
}

// The square of the step in a large draw, within 5 standard errors from the draw itself and the
// share that the formula leaves out where a step passes many gaps.
TEST(StepSquareExpected, AgreesWithTheMeanSquareOfManySteps) {
  constexpr size_t kElements = 200000;
  for (const char* const format : {"e4m3fn", "e5m2", "fp16", "bf16"}) {
    for (const Keys keys : {Keys::kSame, Keys::kIndependent}) {
      const Drawn drawn = Draw(format, keys, kElements, 4);
      for (const float lr : {1e-4f, 1e-3f, 1e-2f, 0.1f, 0.5f}) {
        double sum = 0, fourth = 0;
        for (size_t i = 0; i < kElements; ++i) {
          const double square = std::pow(static_cast<double>(NaiveStep(drawn, i, lr)), 2);
          sum += square;
          fourth += square * square;
        }
        const double mean = sum / kElements;
        const double error = std::sqrt((fourth / kElements - mean * mean) / kElements);
        const double expected =
            StepSquareExpected(drawn.format, keys == Keys::kSame, static_cast<double>(lr));
        EXPECT_NEAR(mean, expected, 5 * error + 5e-3 * expected + 1e-9 * lr * lr)
            << format << " " << ToString(keys) << " lr " << lr;
      }
    }
  }
}

// One cliff, a factor 2 wide, with the same key.
TEST(MovedShareExpected, OfTheSameKeyFallsFromOneToZeroBetweenTheEndsOfTheCliff) {
  for (const char* const name : {"e4m3fn", "e5m2", "fp16", "bf16"}) {
    const FormatSpec format = FindFormat(name)->spec;
    const double least = 1 / (std::ldexp(1, format.mantissa_bits + 2) - 1);
    EXPECT_EQ(MovedShareExpected(format, true, least * (1 - 1e-9)), 0) << name;
    EXPECT_GT(MovedShareExpected(format, true, least * 1.01), 0) << name;
    EXPECT_LT(MovedShareExpected(format, true, least * 1.9), 0.999) << name;
    EXPECT_GT(MovedShareExpected(format, true, least * (2 + 1e-9)), 0.98) << name;
  }
}

TEST(UnmovedExpected, IsTheRateOfOneExpectedMover) {
  const FormatSpec format = FindFormat("bf16")->spec;
  for (const bool same_key : {false, true}) {
    const double rate = UnmovedExpected(format, same_key, 1 << 20);
    EXPECT_LT((1 << 20) * MovedShareExpected(format, same_key, rate), 1);
    EXPECT_GE((1 << 20) * MovedShareExpected(format, same_key, rate * (1 + 0x1p-22)), 1);
  }
}

TEST(HalfNormExpected, LeavesAQuarterOfTheSquare) {
  for (const char* const name : {"e4m3fn", "bf16"}) {
    const FormatSpec format = FindFormat(name)->spec;
    for (const bool same_key : {false, true}) {
      const double rate = HalfNormExpected(format, same_key);
      const double ratio = StepSquareExpected(format, same_key, rate) / (rate * rate);
      EXPECT_NEAR(ratio, 0.25, 1e-5) << name << " " << same_key;
    }
  }
}

}  // namespace
}  // namespace numsim::experiments::update_fidelity
