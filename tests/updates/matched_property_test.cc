// Tests what must hold for matched steps whatever the numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "numsim/cast/shared/round_step.h"
#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"
#include "tests/support/sampling.h"
#include "tests/updates/matched_check.h"
#include "tests/updates/matched_large.h"

namespace numsim {
namespace {

constexpr MatchedQuantity kQuantities[] = {MatchedQuantity::kNorm, MatchedQuantity::kProjection};

// Ascending: zero, single float32 steps in places, and everything between, up to the largest.
std::vector<float> Alphas(uint64_t seed) {
  oracle::TestRandom random(seed);
  std::vector<uint32_t> bits = {0, 1, 2, 0x7F7FFFFE, 0x7F7FFFFF};
  for (int k = 0; k < 60; ++k) {
    const auto start = static_cast<uint32_t>(random.Below(0x7F7FFFF0));
    for (uint32_t step = 0; step < 4; ++step) bits.push_back(start + step);
  }
  for (uint32_t field = 90; field < 150; ++field) bits.push_back(field << 23);
  std::sort(bits.begin(), bits.end());
  std::vector<float> alphas;
  for (uint32_t b : bits) alphas.push_back(std::bit_cast<float>(b));
  return alphas;
}

class MatchedPropertyOfFormat : public testing::TestWithParam<oracle::Format> {};

TEST_P(MatchedPropertyOfFormat, StepsNeverShrinkAsAlphaGrows) {
  const std::string& format = GetParam().name;
  for (int u = 0; u < kUpdateShapes; ++u) {
    const MatchedCase c =
        DrawCase(format, WeightKind::kMixed, static_cast<UpdateShape>(u), 40, 7 + u);
    std::vector<float> before = c.weights;
    size_t wrong = 0;
    for (float alpha : Alphas(u)) {
      std::vector<float> now(before.size());
      RoundStep(c.plan, c.weights, c.update, alpha, now);
      for (size_t i = 0; i < now.size(); ++i) {
        const float u_i = c.update[i];
        const bool ok = u_i > 0   ? now[i] >= before[i]
                        : u_i < 0 ? now[i] <= before[i]
                                  : now[i] == c.weights[i];
        if (ok || ++wrong > 3) continue;
        ADD_FAILURE() << Describe(c) << "element " << i << ": " << before[i] << " then " << now[i]
                      << " at alpha " << alpha;
      }
      before = now;
    }
    ASSERT_EQ(wrong, 0u);
  }
}

TEST_P(MatchedPropertyOfFormat, FlippedSignsGiveTheFlippedStep) {
  if (GetParam().signs == oracle::Signs::kNone) GTEST_SKIP() << "no negative weights";
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const MatchedCase c = DrawCase(GetParam().name,
                                   static_cast<WeightKind>(seed % kWeightKinds),
                                   static_cast<UpdateShape>(seed % kUpdateShapes),
                                   30,
                                   seed);
    MatchedCase flipped = c;
    for (float& w : flipped.weights) w = -w;
    for (float& u : flipped.update) u = -u;
    for (MatchSolver solver : kSolvers) {
      const TakenStep a = Take(c, solver), b = Take(flipped, solver);
      EXPECT_EQ(a.step.status, b.step.status);
      EXPECT_EQ(a.step.alpha, b.step.alpha);
      EXPECT_EQ(a.step.matched, b.step.matched);
      for (size_t i = 0; i < a.weights.size(); ++i) EXPECT_EQ(a.weights[i], -b.weights[i]);
    }
    ASSERT_FALSE(HasFailure()) << Describe(c);
  }
}

TEST_P(MatchedPropertyOfFormat, TwiceTheLearningRateNeedsNoSmallerAlpha) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    MatchedCase c = DrawCase(GetParam().name,
                             static_cast<WeightKind>(seed % kWeightKinds),
                             static_cast<UpdateShape>(seed * 3 % kUpdateShapes),
                             30,
                             50 + seed);
    float last = 0;
    bool out_of_reach = false;
    for (c.learning_rate = 1e-9f; c.learning_rate < 100; c.learning_rate *= 2) {
      const MatchedStep step = Take(c, kSolvers[seed % 2]).step;
      if (step.status == UpdateStatus::kSaturated) {
        out_of_reach = true;
        continue;
      }
      EXPECT_FALSE(out_of_reach) << Describe(c);
      EXPECT_GE(step.alpha, last) << Describe(c);
      last = step.alpha;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats,
                         MatchedPropertyOfFormat,
                         testing::ValuesIn(SampledCases(SymmetricFormats())),
                         oracle::ParamName);

// Whatever is drawn, the step lies within the group's largest jump of the target, and no end of the
// group is nearer.
void ExpectWithinOneJump(const MatchedResult& result) {
  if (result.step.status == UpdateStatus::kSaturated) return;
  EXPECT_LT(result.matched_below, result.step.target);
  EXPECT_GE(result.matched_at, result.step.target * (1 - 0x1p-50));
  if (result.step.status == UpdateStatus::kBelowMinStep) return;
  const double distance = std::abs(result.step.matched - result.step.target);
  EXPECT_LE(distance, result.greatest_jump * (1 + 0x1p-40));
  EXPECT_LE(distance, (result.step.target - result.matched_below) * (1 + 0x1p-40));
  EXPECT_LE(distance, std::abs(result.matched_at - result.step.target) * (1 + 0x1p-40));
}

// The same kinds of arrays, so small that exact arithmetic can judge them.
TEST(MatchedProperty, SmallArraysOfEveryKindByTheOracle) {
  uint64_t seed = 900;
  for (LargeKind kind : kLargeKinds) {
    SCOPED_TRACE(ToString(kind));
    for (const char* format : {"e4m3fn", "bf16", "int8"}) {
      ++seed;
      MatchedCase c = DrawLarge(format, kind, 130 + seed % 7, seed);
      c.learning_rate = seed % 2 == 0 ? 1e-2f : 0.3f;
      for (MatchedQuantity quantity : kQuantities) {
        c.quantity = quantity;
        ExpectWithinOneJump(CheckByOracle(c, oracle::GridOf(format)));
      }
    }
  }
}

TEST(MatchedProperty, LargeArraysOfEveryKind) {
  uint64_t seed = 1000;
  for (LargeKind kind : kLargeKinds) {
    SCOPED_TRACE(ToString(kind));
    for (const char* format : {"e4m3fn", "bf16", "fp16", "int8", "fp32"}) {
      ++seed;
      MatchedCase c = DrawLarge(format, kind, 40001 + 5 * (seed % 7), seed);
      constexpr float kRates[] = {1e-5f, 1e-2f, 0.3f};
      for (size_t i = seed % SampleEvery(3); i < std::size(kRates); i += SampleEvery(3)) {
        c.learning_rate = kRates[i];
        c.quantity = kQuantities[seed % 2];
        ExpectWithinOneJump(CheckByLibrary(c));
      }
    }
  }
}

TEST(MatchedProperty, SampledArraysOfEveryKind) {
  uint64_t seed = 2000;
  for (LargeKind kind : kLargeKinds) {
    SCOPED_TRACE(ToString(kind));
    for (const char* format : {"e4m3fn", "bf16"}) {
      if (++seed % SampleEvery(3) != 0) continue;
      MatchedCase c = DrawLarge(format, kind, (size_t{1} << 17) + seed % 5, seed);
      c.learning_rate = seed % 3 == 0 ? 1e-4f : 0.01f;
      for (MatchedQuantity quantity : kQuantities) {
        c.quantity = quantity;
        ExpectWithinOneJump(CheckByLibrary(c));
      }
    }
  }
}

TEST(MatchedProperty, AlphaTendsToTheLearningRateWithPrecision) {
  for (MatchedQuantity quantity : kQuantities) {
    double last = 1e9;
    for (int bits = 1; bits <= 23; ++bits) {
      MatchedCase c =
          DrawLarge("e8m" + std::to_string(bits), LargeKind::kNormal, size_t{1} << 15, 3);
      c.quantity = quantity;
      const MatchedStep step = Take(c, MatchSolver::kSelection).step;
      EXPECT_EQ(step.status, UpdateStatus::kOk);
      const double error = std::abs(static_cast<double>(step.alpha) / 0.01 - 1);
      // A rounding error of 2^-bits in a step of 0.01 is chance in direction from there on.
      EXPECT_LT(error, std::max(0.7 * last, 200 * std::ldexp(1.0, -bits))) << bits;
      last = error;
    }
    EXPECT_LT(last, 2e-7) << "fp32 storage";
  }
}

// The share of streams that move is p, whatever the format; the expectation is the target.
TEST(MatchedProperty, ExpectationOfOneAtRandomIsTheTarget) {
  constexpr int kStreams = 4000;
  for (MatchedQuantity quantity : kQuantities) {
    for (double p : {0.02, 0.3, 0.5, 0.97}) {
      MatchedCase c;
      c.format = "e4m3fn";
      c.plan = MatchedPlan(c.format);
      c.weights.assign(8, 1.0f);  // the next value is 1.125
      c.update.assign(8, 0.5f);
      c.quantity = quantity;
      // Norm: lr sqrt(8) / 2 = p / 8. Projection: lr 8 / 4 = p / 16.
      const bool norm = quantity == MatchedQuantity::kNorm;
      c.learning_rate = static_cast<float>(norm ? p / 4 / std::sqrt(8.0) : p / 32);
      int moves = 0;
      std::vector<int> moves_of(8);
      for (int stream = 0; stream < kStreams; ++stream) {
        c.random = {.seed = 77, .stream = static_cast<uint64_t>(stream)};
        const TakenStep taken = Take(c, kSolvers[stream % 2]);
        ASSERT_EQ(taken.step.status, UpdateStatus::kBelowMinStep);
        for (size_t i = 0; i < 8; ++i) {
          moves_of[i] += taken.weights[i] != 1.0f;
          moves += taken.weights[i] != 1.0f;
        }
        ASSERT_EQ(taken.step.matched > 0, taken.weights != c.weights);
      }
      const auto near = [](int count, double chance) {
        const double sigma = std::sqrt(kStreams * chance * (1 - chance));
        return std::abs(count - kStreams * chance) <= 4 * sigma;
      };
      EXPECT_TRUE(near(moves, p)) << moves << " for p " << p;
      for (int count : moves_of) EXPECT_TRUE(near(count, p / 8)) << count << " for p " << p;
    }
  }
}

TEST(MatchedProperty, NoneMovesNothingBelowTheLeastStep) {
  for (const char* format : {"e4m3fn", "fp16", "int8"}) {
    for (MatchedQuantity quantity : kQuantities) {
      MatchedCase c = DrawLarge(format, LargeKind::kNormal, 500, 9);
      c.learning_rate = 1e-9f;
      c.small_step = SmallStep::kNone;
      c.quantity = quantity;
      for (MatchSolver solver : kSolvers) {
        const TakenStep taken = Take(c, solver);
        EXPECT_EQ(taken.step.status, UpdateStatus::kBelowMinStep);
        EXPECT_EQ(taken.step.matched, 0);
        EXPECT_GT(taken.step.alpha, 0);
        EXPECT_EQ(taken.weights, c.weights);
      }
    }
  }
}

TEST(MatchedProperty, TiesAreBrokenByTheStream) {
  MatchedCase c;
  c.format = "bf16";
  c.plan = MatchedPlan(c.format);
  c.weights.assign(256, 1.5f);
  c.update.assign(256, -1.0f);
  c.learning_rate = 0x1p-9f;  // T = 2^-10: 16 steps of 2^-7
  std::vector<std::vector<float>> results;
  std::vector<int> times(256);
  for (uint64_t stream = 0; stream < 200; ++stream) {
    c.random.stream = stream;
    const TakenStep taken = Take(c, MatchSolver::kSelection);
    EXPECT_EQ(taken.step.matched, taken.step.target);
    EXPECT_EQ(std::count(taken.weights.begin(), taken.weights.end(), 1.5f), 256 - 16);
    for (const auto& other : results) EXPECT_NE(taken.weights, other);
    results.push_back(taken.weights);
    for (size_t i = 0; i < 256; ++i) times[i] += taken.weights[i] != 1.5f;
  }
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  EXPECT_GT(*least, 0);  // 200 / 16 = 12.5 each
  EXPECT_LT(*most, 32);
}

void ExpectSameEverywhere(const MatchedCase& c, MatchSolver solver) {
  SCOPED_TRACE(Describe(c));
  const TakenStep want = Take(c, solver);
  WithEachBackend([&] {
    for (int threads : {1, 2, 3}) {
      SCOPED_TRACE(threads);
      SetThreadCount(threads);
      ExpectSame(Take(c, solver), want);
    }
  });
}

TEST(MatchedProperty, ThreadsAndBackendsDoNotChangeBits) {
  for (LargeKind kind : {LargeKind::kNormal, LargeKind::kSigns, LargeKind::kManyMagnitudes}) {
    ExpectSameEverywhere(DrawLarge("e4m3fn", kind, 40003, 21), MatchSolver::kSelection);
    ExpectSameEverywhere(DrawLarge("bf16", kind, 9001, 22), MatchSolver::kBisection);
    ExpectSameEverywhere(DrawLarge("bnb-e4m3", kind, 3001, 23), MatchSolver::kSelection);
  }
}

// Selection is there to need fewer passes.
TEST(MatchedProperty, SelectionTakesFewPasses) {
  for (const char* format : {"e4m3fn", "bf16", "fp16"}) {
    MatchedCase c = DrawLarge(format, LargeKind::kNormal, size_t{1} << 17, 33);
    c.learning_rate = 1e-3f;
    const int selection = Take(c, MatchSolver::kSelection).step.passes;
    const int bisection = Take(c, MatchSolver::kBisection).step.passes;
    EXPECT_GE(bisection, 10) << format;
    EXPECT_LE(2 * selection, bisection) << format;
  }
}

}  // namespace
}  // namespace numsim
