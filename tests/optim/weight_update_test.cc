// Update rules against plain loops over the oracle, and their statuses.
#include "numsim/optim/weight_update.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "tests/oracle/formats.h"
#include "tests/oracle/oracle.h"

namespace numsim {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr UpdateRule kAllRules[] = {
    UpdateRule::kNaive, UpdateRule::kStochastic, UpdateRule::kBinarySearch};

float ValueOf(const oracle::Grid& grid, uint32_t code) {
  const oracle::Real real = oracle::DecodeCode(grid, code);
  if (real.kind == oracle::Real::Kind::kNan) return kNaN;
  const double magnitude = real.kind == oracle::Real::Kind::kInfinity
                               ? std::numeric_limits<double>::infinity()
                               : real.magnitude;
  return static_cast<float>(real.negative ? -magnitude : magnitude);
}

// To nearest even, by search in the list of values.
float OracleRound(const oracle::Grid& grid, float x) {
  const oracle::Real real = oracle::FromFloat32(std::bit_cast<uint32_t>(x));
  return ValueOf(grid, oracle::Encode(grid, real, {}));
}

struct Arrays {
  std::vector<float> params, update;
};

// Normal draws, parameters rounded to the format; the same draws for both, or independent ones.
Arrays Draw(const std::string& format, size_t n, bool same_key) {
  Arrays arrays{std::vector<float>(n), std::vector<float>(n)};
  FillNormal({7, 0}, 0, arrays.params);
  FillNormal({7, same_key ? 0u : 1u}, 0, arrays.update);
  const oracle::Grid grid(oracle::FindFormat(format));
  for (float& x : arrays.params) x = OracleRound(grid, x);
  return arrays;
}

WeightUpdate UpdateOf(const std::string& format, const Arrays& arrays, double lr) {
  return {FindFormat(format)->spec, arrays.params, arrays.update, lr};
}

struct Result {
  UpdateOutcome outcome;
  std::vector<float> params;
};

Result Apply(UpdateRule rule, const WeightUpdate& weights, const UpdateSettings& settings = {}) {
  Result result{{}, std::vector<float>(weights.params.size())};
  result.outcome = ApplyUpdate(rule, weights, settings, result.params);
  return result;
}

Result ApplyToOne(UpdateRule rule, float param, float update, double lr) {
  const Arrays arrays{{param}, {update}};
  return Apply(rule, UpdateOf("e4m3fn", arrays, lr));
}

void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i])) << "element " << i;
  }
}

// The source's program, in plain loops.
Result SearchAsPrinted(const oracle::Grid& grid,
                       const WeightUpdate& weights,
                       double rtol,
                       int max_iters) {
  const size_t n = weights.params.size();
  Result result{{}, std::vector<float>(n)};
  UpdateOutcome& outcome = result.outcome;
  float alpha_low = 0, alpha_high = 1;
  double update_square = 0;
  for (const float u : weights.update) update_square += static_cast<double>(u) * u;
  outcome.target = weights.learning_rate * update_square;
  outcome.status = UpdateStatus::kNotConverged;
  for (int i = 0; i < max_iters; ++i) {
    outcome.iterations = i + 1;
    outcome.alpha = (alpha_low + alpha_high) / 2;
    outcome.achieved = 0;
    for (size_t j = 0; j < n; ++j) {
      const float product = outcome.alpha * weights.update[j];
      result.params[j] = OracleRound(grid, weights.params[j] + product);
      const float step = OracleRound(grid, result.params[j] - weights.params[j]);
      outcome.achieved += static_cast<double>(step) * step;
    }
    if (std::abs(outcome.achieved - outcome.target) / outcome.target < rtol) {
      outcome.status = UpdateStatus::kOk;
      break;
    }
    const bool below = outcome.achieved < outcome.target;
    alpha_low = below ? outcome.alpha : alpha_low;
    alpha_high = below ? alpha_high : outcome.alpha;
  }
  return result;
}

TEST(WeightUpdate, WorkedExampleOfTheSourceVanishes) {
  const Result result = ApplyToOne(UpdateRule::kNaive, 0.75f, 0.03f, 1);
  EXPECT_EQ(result.params[0], 0.75f);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kUnchanged);
  // The midpoint 0.78125 goes to the even code, 0.75; beyond it is the next value.
  EXPECT_EQ(ApplyToOne(UpdateRule::kNaive, 0.75f, 0.03125f, 1).params[0], 0.75f);
  EXPECT_EQ(ApplyToOne(UpdateRule::kNaive, 0.75f, 0.03126f, 1).params[0], 0.8125f);
}

TEST(WeightUpdate, NaiveRoundsProductSumAndResult) {
  for (const char* const format : {"e4m3fn", "e5m2", "fp16", "bf16"}) {
    const oracle::Grid grid(oracle::FindFormat(format));
    const Arrays arrays = Draw(format, 5000, false);
    const double lr = 0.0123;
    const Result result = Apply(UpdateRule::kNaive, UpdateOf(format, arrays, lr));
    std::vector<float> expected;
    for (size_t i = 0; i < arrays.params.size(); ++i) {
      const float product = static_cast<float>(lr) * arrays.update[i];
      expected.push_back(OracleRound(grid, arrays.params[i] + product));
    }
    SCOPED_TRACE(format);
    ExpectSameBits(result.params, expected);
  }
}

TEST(WeightUpdate, StochasticRoundsTheExactSumOnce) {
  for (const char* const format : {"e4m3fn", "fp16", "bf16"}) {
    for (const double lr : {0.3, 1e-4, 1e-9}) {
      for (const int bits : {32, 7}) {
        const oracle::Grid grid(oracle::FindFormat(format));
        const Arrays arrays = Draw(format, 5000, false);
        UpdateSettings settings;
        settings.random = {{3, 9}, 1000};
        settings.random_bits = bits;
        const Result result =
            Apply(UpdateRule::kStochastic, UpdateOf(format, arrays, lr), settings);
        const oracle::Setting setting{.mode = oracle::Mode::kStochastic, .random_bits = bits};
        std::vector<float> expected;
        for (size_t i = 0; i < arrays.params.size(); ++i) {
          const double sum = arrays.params[i] + lr * static_cast<double>(arrays.update[i]);
          const auto real = oracle::FromFloat64(std::bit_cast<uint64_t>(sum));
          const uint32_t word = RandomBits({3, 9}, 1000 + i, bits);
          expected.push_back(ValueOf(grid, oracle::Encode(grid, real, setting, word)));
        }
        SCOPED_TRACE(format);
        ExpectSameBits(result.params, expected);
      }
    }
  }
}

TEST(WeightUpdate, StochasticSeesWhatAFloat32SumLoses) {
  const size_t n = 1 << 20;
  const Arrays arrays{std::vector<float>(n, 1.0f), std::vector<float>(n, 1.0f)};
  // A step away with probability 2^-25 / 2^-7: four of 2^20 expected.
  const Result result = Apply(UpdateRule::kStochastic, UpdateOf("bf16", arrays, 0x1p-25));
  const auto moved = std::count(result.params.begin(), result.params.end(), 1.0078125f);
  EXPECT_GE(moved, 1);
  EXPECT_LE(moved, 12);
}

TEST(WeightUpdate, BinarySearchIsThePrintedProgram) {
  for (const char* const format : {"e4m3fn", "e5m2", "fp16", "bf16"}) {
    const oracle::Grid grid(oracle::FindFormat(format));
    for (const bool same_key : {true, false}) {
      const Arrays arrays = Draw(format, 1500, same_key);
      for (const double lr : {1.0, 0.1, 1e-3, 1e-6, 1e-10}) {
        const WeightUpdate weights = UpdateOf(format, arrays, lr);
        const Result expected = SearchAsPrinted(grid, weights, 1e-2, 32);
        const Result result = Apply(UpdateRule::kBinarySearch, weights);
        SCOPED_TRACE(fmt::format("{} same={} lr={}", format, same_key, lr));
        EXPECT_EQ(result.outcome.status, expected.outcome.status);
        EXPECT_EQ(result.outcome.alpha, expected.outcome.alpha);
        EXPECT_EQ(result.outcome.iterations, expected.outcome.iterations);
        EXPECT_NEAR(result.outcome.target, expected.outcome.target, 1e-9 * expected.outcome.target);
        EXPECT_NEAR(
            result.outcome.achieved, expected.outcome.achieved, 1e-9 * expected.outcome.achieved);
        ExpectSameBits(result.params, expected.params);
      }
    }
  }
}

TEST(WeightUpdate, BinarySearchTakesAStepOfTheRootOfTheLearningRate) {
  const Arrays arrays = Draw("bf16", 1 << 14, false);
  const double lr = 1e-4;
  const Result result = Apply(UpdateRule::kBinarySearch, UpdateOf("bf16", arrays, lr));
  ASSERT_EQ(result.outcome.status, UpdateStatus::kOk);
  double step_square = 0;
  for (size_t i = 0; i < arrays.params.size(); ++i) {
    const double step = static_cast<double>(result.params[i]) - arrays.params[i];
    step_square += step * step;
  }
  const double ratio = std::sqrt(step_square / SquaredSum(arrays.update)) / lr;
  EXPECT_NEAR(ratio, 1 / std::sqrt(lr), 0.01 / std::sqrt(lr));
}

TEST(WeightUpdate, BinarySearchReturnsTheLastCandidateNotTheClosest) {
  // Four equal elements move together: a squared step of 0 or 4 / 64, the target between.
  const Arrays arrays{std::vector<float>(4, 1.0f), std::vector<float>(4, 0.5f)};
  const double lr = 0.05;  // target 0.05
  const Result result = Apply(UpdateRule::kBinarySearch, UpdateOf("e4m3fn", arrays, lr));
  EXPECT_EQ(result.outcome.status, UpdateStatus::kNotConverged);
  EXPECT_EQ(result.outcome.iterations, 32);
  // Bisection closes in on alpha = 1/8, where a tie to even still rounds back.
  EXPECT_NEAR(result.outcome.alpha, 0.125f, 1e-6f);
  EXPECT_TRUE(result.outcome.achieved == 0 || result.outcome.achieved == 0.0625);
}

TEST(WeightUpdate, StepGrowsWithTheFactor) {
  for (const char* const format : {"e4m3fn", "fp16", "bf16"}) {
    const Arrays arrays = Draw(format, 3000, false);
    std::vector<float> before(arrays.params.size(), 0.0f);
    for (double lr = 1e-5; lr < 1; lr *= 1.7) {
      const Result result = Apply(UpdateRule::kNaive, UpdateOf(format, arrays, lr));
      for (size_t i = 0; i < before.size(); ++i) {
        const float step = std::abs(result.params[i] - arrays.params[i]);
        ASSERT_GE(step, before[i]) << format << " lr " << lr << " element " << i;
        before[i] = step;
      }
    }
  }
}

TEST(WeightUpdate, SignFlipOfEverythingFlipsTheResult) {
  const Arrays arrays = Draw("e4m3fn", 3000, false);
  Arrays flipped = arrays;
  for (float& x : flipped.params) x = -x;
  for (float& x : flipped.update) x = -x;
  for (const UpdateRule rule : kAllRules) {
    const Result result = Apply(rule, UpdateOf("e4m3fn", arrays, 1e-3));
    const Result other = Apply(rule, UpdateOf("e4m3fn", flipped, 1e-3));
    for (size_t i = 0; i < arrays.params.size(); ++i) {
      ASSERT_EQ(result.params[i], -other.params[i]) << Name(rule) << " element " << i;
    }
  }
}

TEST(WeightUpdate, SameBitsOnAnyNumberOfThreads) {
  const int before = ThreadCount();
  const Arrays arrays = Draw("e4m3fn", 150001, false);
  const WeightUpdate weights = UpdateOf("e4m3fn", arrays, 1e-3);
  for (const UpdateRule rule : kAllRules) {
    SetThreadCount(1);
    const Result one = Apply(rule, weights);
    SetThreadCount(3);
    const Result three = Apply(rule, weights);
    SetThreadCount(before);
    SCOPED_TRACE(Name(rule));
    ExpectSameBits(one.params, three.params);
    EXPECT_EQ(one.outcome.achieved, three.outcome.achieved);
    EXPECT_EQ(one.outcome.target, three.outcome.target);
    EXPECT_EQ(one.outcome.alpha, three.outcome.alpha);
  }
}

TEST(WeightUpdate, ZeroUpdateOrRateLeavesTheParametersAlone) {
  for (const UpdateRule rule : kAllRules) {
    const Result zero = ApplyToOne(rule, 0.75f, 0.0f, 0.5);
    EXPECT_EQ(zero.params[0], 0.75f) << Name(rule);
    EXPECT_EQ(zero.outcome.status, UpdateStatus::kZeroUpdate) << Name(rule);
    const Result rate = ApplyToOne(rule, 0.75f, 1.0f, 0);
    EXPECT_EQ(rate.params[0], 0.75f) << Name(rule);
    EXPECT_EQ(rate.outcome.status, UpdateStatus::kZeroUpdate) << Name(rule);
  }
}

TEST(WeightUpdate, BinarySearchAtRateZeroIsNoIdentity) {
  // As printed: no candidate meets a target of 0, the last one is alpha = 2^-32, and a bfloat16
  // that is zero takes it up.
  const Arrays arrays{{0.0f}, {1.0f}};
  const Result result = Apply(UpdateRule::kBinarySearch, UpdateOf("bf16", arrays, 0));
  EXPECT_EQ(result.params[0], 0x1p-32f);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kZeroUpdate);
}

TEST(WeightUpdate, NonfiniteNumbersAreReported) {
  for (const UpdateRule rule : kAllRules) {
    EXPECT_EQ(ApplyToOne(rule, kNaN, 1.0f, 0.5).outcome.status, UpdateStatus::kNonfinite);
    EXPECT_EQ(ApplyToOne(rule, 1.0f, kNaN, 0.5).outcome.status, UpdateStatus::kNonfinite);
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(ApplyToOne(rule, 1.0f, infinity, 0.5).outcome.status, UpdateStatus::kNonfinite);
  }
  // E4M3FN has no infinity: 448 + 448 overflows to NaN.
  const Result overflow = ApplyToOne(UpdateRule::kNaive, 448.0f, 448.0f, 1);
  EXPECT_TRUE(std::isnan(overflow.params[0]));
  EXPECT_EQ(overflow.outcome.status, UpdateStatus::kNonfinite);
}

TEST(WeightUpdate, BinarySearchWalksDownOnNaN) {
  const Result result = ApplyToOne(UpdateRule::kBinarySearch, 1.0f, kNaN, 0.5);
  EXPECT_EQ(result.outcome.iterations, 32);
  EXPECT_EQ(result.outcome.alpha, 0x1p-32f);
}

TEST(WeightUpdate, ToleranceZeroNeverEndsEarly) {
  const Arrays arrays = Draw("bf16", 4096, false);
  UpdateSettings settings;
  settings.tolerance = 0;
  settings.iterations = 9;
  const Result result = Apply(UpdateRule::kBinarySearch, UpdateOf("bf16", arrays, 0.1), settings);
  EXPECT_EQ(result.outcome.iterations, 9);
  EXPECT_EQ(result.outcome.status, UpdateStatus::kNotConverged);
}

TEST(WeightUpdate, NamesReadBack) {
  for (const UpdateRule rule : kAllRules) EXPECT_EQ(ParseUpdateRule(Name(rule)), rule);
  EXPECT_THROW(ParseUpdateRule("nothing"), Error);
}

TEST(SquaredSum, IsExactOnIntegersAndEmptyIsZero) {
  EXPECT_EQ(SquaredSum({}), 0.0);
  std::vector<float> x;
  double expected = 0;
  for (int i = 0; i < 9001; ++i) {
    x.push_back(static_cast<float>(i % 101) - 50.0f);
    expected += static_cast<double>(x.back()) * x.back();
  }
  EXPECT_EQ(SquaredSum(x), expected);
}

}  // namespace
}  // namespace numsim
