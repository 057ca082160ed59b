// Weights of small formats under the update rules; state saved and restored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "numsim/optim/optimizer.h"
#include "tests/support/error_of.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using optimizer_problem::Floats;
using optimizer_problem::OneMatrix;
using optimizer_problem::Problem;
using optimizer_problem::TensorShape;

OptimizerConfig WithWeights(const char* format, const char* rule) {
  OptimizerConfig config;
  config.weights = ParseFormat(format);
  config.update = ParseUpdateRule(rule);
  return config;
}

bool IsBf16(float x) { return (std::bit_cast<uint32_t>(x) & 0xFFFF) == 0; }

float RoundBf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
}

TEST(OptimizerWeights, AreRoundedAtTheStart) {
  Problem plain({}, OneMatrix(100)), rounded(WithWeights("bf16", "naive"), OneMatrix(100));
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(rounded.Weights()[i], RoundBf16(plain.Weights()[i]));
  }
}

// The master of float32 weights takes the very steps of float32 weights, decay included.
TEST(OptimizerWeights, MasterFp32FollowsFloat32Weights) {
  Problem plain({}, OneMatrix(5000)), master(WithWeights("bf16", "master-fp32"), OneMatrix(5000));
  for (uint64_t step = 0; step < 5; ++step) {
    plain.DrawnStep(1e-3, step);
    master.DrawnStep(1e-3, step);
    for (size_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(master.Weights()[i], RoundBf16(plain.Weights()[i])) << step;
    }
  }
  EXPECT_EQ(master.optimizer().StoredBytes().weights, 6);
}

// Steps of 2e-4 around 1, where bf16 has gaps of 2^-8 and 2^-7: nearest rounding loses each of
// them, a compensation gathers them, stochastic rounding has them on average.
TEST(OptimizerWeights, SmallStepsAddUpUnderRulesThatKeepThem) {
  constexpr size_t n = 4096;
  const auto mean_after = [](const char* rule) {
    OptimizerConfig config = WithWeights("bf16", rule);
    config.weight_decay = 0;
    Problem problem(config, OneMatrix(n));
    problem.SetWeights(Floats(n, 1));
    problem.SetGradient(Floats(n, 1));
    for (uint64_t step = 0; step < 100; ++step) problem.optimizer().Step(2e-4, step);
    double sum = 0;
    for (const float w : problem.Weights()) {
      EXPECT_TRUE(IsBf16(w));
      sum += static_cast<double>(w);
    }
    return sum / n;
  };
  EXPECT_EQ(mean_after("naive"), 1);
  EXPECT_NEAR(mean_after("kahan"), 0.98, 0x1p-9);
  // A weight's deviation is below sqrt(100 * 2e-4 * 2^-8) = 0.009, that of the mean 1.4e-4.
  EXPECT_NEAR(mean_after("stochastic"), 0.98, 6e-4);
}

TEST(OptimizerWeights, StochasticStepsAreKeyed) {
  const std::vector<TensorShape> two = {{"a", ParameterRole::kMatrix, 1, 300},
                                        {"b", ParameterRole::kMatrix, 1, 300}};
  const auto weights = [&](uint64_t seed, uint64_t step) {
    Problem problem(WithWeights("bf16", "stochastic"), two, {}, seed);
    std::vector<Floats> result;
    for (size_t i = 0; i < 2; ++i) {
      problem.SetWeights(Floats(300, 1), i);
      problem.SetGradient(Floats(300, 1), i);
    }
    problem.optimizer().Step(1e-3, step);
    return std::vector<Floats>{problem.WeightValues(0), problem.WeightValues(1)};
  };
  const auto first = weights(1, 0);
  EXPECT_EQ(first, weights(1, 0));
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[0], weights(1, 1)[0]);
  EXPECT_NE(first[0], weights(2, 0)[0]);
}

TEST(OptimizerWeights, BytesAreThoseOfWeightsAndOfWhatTheRuleKeeps) {
  const auto bytes = [](const char* format, const char* rule) {
    return Problem(WithWeights(format, rule), {{"w", ParameterRole::kMatrix, 4, 32}})
        .optimizer()
        .StoredBytes()
        .weights;
  };
  EXPECT_EQ(bytes("fp32", "naive"), 4);
  EXPECT_EQ(bytes("bf16", "naive"), 2);
  EXPECT_EQ(bytes("e4m3fn", "stochastic"), 1);
  EXPECT_EQ(bytes("bf16", "split-master"), 4);
  EXPECT_EQ(bytes("bf16", "kahan:e5m2"), 3);
  EXPECT_EQ(bytes("e4m3fn", "master-fp16-scaled"), 3 + 4 / 128.0);
  EXPECT_EQ(bytes("e4m3fn", "master-fp16-scaled@row"), 3 + 4 * 4 / 128.0);
  EXPECT_EQ(bytes("e2m1fn", "naive"), 0.5);
}

const std::vector<TensorShape> kShapes = {{"a.weight", ParameterRole::kMatrix, 20, 30},
                                          {"a.gain", ParameterRole::kGain, 1, 30}};

// Runs `before` steps, moves to another optimiser by Save and Restore, and compares `after` steps
// with those of the first. A gradient is not finite now and then.
void ExpectToContinue(const OptimizerConfig& config, LossScaling scaling) {
  LossScalerConfig scaler;
  scaler.kind = scaling;
  scaler.growth_interval = 3;
  Problem first(config, kShapes, scaler), second(config, kShapes, scaler);
  const auto take = [](Problem& problem, uint64_t step) {
    problem.DrawGradients(step, static_cast<float>(problem.optimizer().LossScale()));
    if (step % 4 == 1) problem.Gradient(0)[3] = HUGE_VALF;
    return problem.optimizer().Step(1e-2, step);
  };
  for (uint64_t step = 0; step < 6; ++step) take(first, step);
  for (size_t i = 0; i < 2; ++i) second.SetWeights(first.WeightValues(i), i);
  second.optimizer().Restore(first.optimizer().Save());
  EXPECT_EQ(second.optimizer().LossScale(), first.optimizer().LossScale());
  for (uint64_t step = 6; step < 14; ++step) {
    const OptimizerStep a = take(first, step), b = take(second, step);
    EXPECT_EQ(a.loss_scale, b.loss_scale);
    EXPECT_EQ(a.tensors[0].rms, b.tensors[0].rms);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(SameBits(first.Weights(i), second.Weights(i))) << "step " << step;
    }
  }
  const auto a = first.optimizer().Save(), b = second.optimizer().Save();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].bytes, b[i].bytes) << a[i].name;
  }
}

TEST(OptimizerState, ARestoredOptimiserContinuesBitForBit) {
  struct Case {
    OptimizerKind kind;
    const char *m, *v, *format, *rule;
    LossScaling scaling;
  };
  for (const Case& c :
       {Case{OptimizerKind::kAdamW, "fp32", "fp32", "fp32", "naive", {}},
        Case{OptimizerKind::kAdamW,
             "e4m3fn@tensor+sr",
             "e5m2@block:64",
             "bf16",
             "stochastic",
             LossScaling::kDynamic},
        Case{OptimizerKind::kStableAdamW,
             "dynamic:128",
             "e4m3@coat:64",
             "bf16",
             "kahan:e5m2",
             LossScaling::kTensor},
        Case{OptimizerKind::kStableAdamW,
             "bf16",
             "fp16",
             "e4m3fn",
             "master-fp16-scaled@row",
             LossScaling::kDynamic},
        Case{OptimizerKind::kSgd, "e5m2", "fp32", "bf16", "split-master", LossScaling::kTensor},
        Case{OptimizerKind::kLion, "e4m3fn", "fp32", "bf16", "master-fp32", LossScaling::kNone}}) {
    SCOPED_TRACE(c.rule);
    OptimizerConfig config = WithWeights(c.format, c.rule);
    config.kind = c.kind;
    config.m = ParseMomentFormat(c.m);
    config.v = ParseMomentFormat(c.v);
    config.moment_filter = MomentFilter::kAll;
    config.beta2_decay = c.scaling == LossScaling::kTensor ? 0.8 : 0;
    ExpectToContinue(config, c.scaling);
  }
}

TEST(OptimizerState, NamesSayWhatIsKept) {
  const auto names = [](const OptimizerConfig& config) {
    Problem problem(config, OneMatrix(8));
    std::vector<std::string> all;
    for (const NamedBytes& piece : problem.optimizer().Save()) all.push_back(piece.name);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({}), (Names{"w/steps", "w/m", "w/v", "loss_scaler"}));
  OptimizerConfig lion = WithWeights("e4m3fn", "master-fp16-scaled");
  lion.kind = OptimizerKind::kLion;
  EXPECT_EQ(names(lion),
            (Names{"w/steps", "w/m", "w/update.words", "w/update.scales", "loss_scaler"}));
}

TEST(OptimizerState, WhatDoesNotFitIsNamed) {
  Problem problem(WithWeights("bf16", "kahan"), OneMatrix(8));
  const auto fault = [&](const std::function<void(std::vector<NamedBytes>&)>& change) {
    std::vector<NamedBytes> state = problem.optimizer().Save();
    change(state);
    return ErrorOf([&] { problem.optimizer().Restore(state); });
  };
  EXPECT_EQ(fault([](std::vector<NamedBytes>&) {}), kNoError);
  for (size_t i = 0; i < 5; ++i) {
    const std::string name = problem.optimizer().Save()[i].name;
    const std::string missing =
        fault([&](std::vector<NamedBytes>& s) { s.erase(s.begin() + static_cast<long>(i)); });
    EXPECT_THAT(missing, AllOf(HasSubstr(name), HasSubstr("missing")));
    const std::string shorter = fault([&](std::vector<NamedBytes>& s) { s[i].bytes.pop_back(); });
    EXPECT_THAT(shorter, HasSubstr(name));
  }
  EXPECT_THAT(fault([](std::vector<NamedBytes>& s) {
                s.push_back({"x/m", {}});
              }),
              HasSubstr("'x/m'"));
  EXPECT_THAT(fault([](std::vector<NamedBytes>& s) { s[0].bytes[7] = std::byte{0xFF}; }),
              HasSubstr("w/steps"));
}

}  // namespace
}  // namespace numsim
