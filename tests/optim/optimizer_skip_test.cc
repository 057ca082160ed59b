// Gradients that are not finite, under each kind of loss scaling.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/optim/optimizer.h"
#include "tests/support/optimizer_problem.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

using optimizer_problem::Floats;
using optimizer_problem::Problem;
using optimizer_problem::TensorShape;

const std::vector<TensorShape> kTwo = {{"a", ParameterRole::kMatrix, 3, 5},
                                       {"b", ParameterRole::kMatrix, 1, 9}};

LossScalerConfig Scaling(LossScaling kind, double initial = 65536) {
  LossScalerConfig config;
  config.kind = kind;
  config.initial = initial;
  return config;
}

// Bytes of the state that start with `prefix`, to compare.
std::vector<std::byte> StateOf(const Optimizer& optimizer, const std::string& prefix) {
  std::vector<std::byte> all;
  for (const NamedBytes& piece : optimizer.Save()) {
    if (piece.name.rfind(prefix, 0) == 0) {
      all.insert(all.end(), piece.bytes.begin(), piece.bytes.end());
    }
  }
  return all;
}

TEST(OptimizerSkips, WithoutAScalerNothingMovesAndTheStepSaysSo) {
  for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
    Problem problem({}, kTwo);
    problem.DrawnStep(1e-2, 0);
    const Floats a = problem.WeightValues(0), b = problem.WeightValues(1);
    const auto state = StateOf(problem.optimizer(), "");
    problem.DrawGradients(1);
    problem.Gradient(1)[7] = bad;
    const OptimizerStep& step = problem.optimizer().Step(1e-2, 1);
    EXPECT_FALSE(step.finite);
    EXPECT_FALSE(step.skipped) << "no loss scaler did it";
    EXPECT_EQ(step.gradient_norm, HUGE_VAL);
    EXPECT_EQ(step.tensors[1].gradient_norm, HUGE_VAL);
    EXPECT_TRUE(std::isfinite(step.tensors[0].gradient_norm));
    EXPECT_TRUE(SameBits(problem.Weights(0), a));
    EXPECT_TRUE(SameBits(problem.Weights(1), b));
    EXPECT_EQ(StateOf(problem.optimizer(), ""), state);
  }
}

// A tensor without a gradient stays, does not count the step, and its old gradient enters no norm.
TEST(OptimizerSkips, TensorsWithoutAGradientStay) {
  OptimizerConfig config;
  config.clip_norm = 0.5;
  Problem problem(config, kTwo);
  problem.DrawnStep(1e-2, 0);
  problem.DrawGradients(1);
  problem.Gradient(0)[2] = std::nanf("");
  const Floats a = problem.WeightValues(0), b = problem.WeightValues(1);
  const auto state = StateOf(problem.optimizer(), "a");
  const std::vector<uint8_t> without = {1, 0};
  const OptimizerStep& step = problem.optimizer().Step(1e-2, 1, false, without);
  EXPECT_TRUE(step.finite);
  EXPECT_TRUE(step.tensors[0].skipped);
  EXPECT_FALSE(step.tensors[1].skipped);
  EXPECT_GT(step.gradient_norm, 0);
  EXPECT_EQ(step.gradient_norm, step.tensors[1].gradient_norm);
  EXPECT_TRUE(SameBits(problem.Weights(0), a));
  EXPECT_FALSE(SameBits(problem.Weights(1), b));
  EXPECT_EQ(StateOf(problem.optimizer(), "a"), state);
  const std::vector<uint8_t> none = {1, 1};
  EXPECT_EQ(problem.optimizer().Step(1e-2, 2, false, none).gradient_norm, 0);
  EXPECT_TRUE(SameBits(problem.Weights(0), a));
  EXPECT_THROW(problem.optimizer().Step(1e-2, 3, false, {without.data(), 1}), Error);
}

TEST(OptimizerSkips, ScaledGradientsMoveAsUnscaledOnes) {
  for (const auto kind : {LossScaling::kDynamic, LossScaling::kTensor}) {
    OptimizerConfig config;
    config.clip_norm = 0.5;
    Problem plain(config, kTwo), scaled(config, kTwo, Scaling(kind));
    for (uint64_t step = 0; step < 4; ++step) {
      const double norm = plain.DrawnStep(1e-2, step).gradient_norm;
      const auto scale = static_cast<float>(scaled.optimizer().LossScale());
      const OptimizerStep& taken = scaled.DrawnStep(1e-2, step, scale);
      EXPECT_EQ(taken.gradient_norm, norm);
      EXPECT_EQ(taken.loss_scale, 65536);
      EXPECT_TRUE(SameBits(plain.Weights(0), scaled.Weights(0)));
      EXPECT_TRUE(SameBits(plain.Weights(1), scaled.Weights(1)));
    }
  }
}

TEST(OptimizerSkips, DynamicSkipsTheStepAndHalvesTheScale) {
  Problem problem({}, kTwo, Scaling(LossScaling::kDynamic)), other({}, kTwo);
  problem.DrawGradients(0, 65536);
  problem.Gradient(0)[0] = kInfinity;
  const Floats a = problem.WeightValues(0), b = problem.WeightValues(1);
  const auto state = StateOf(problem.optimizer(), "b");
  const OptimizerStep& step = problem.optimizer().Step(1e-2, 0);
  EXPECT_TRUE(step.skipped);
  EXPECT_FALSE(step.finite);
  EXPECT_EQ(step.loss_scale, 65536);
  EXPECT_TRUE(step.tensors[0].skipped);
  EXPECT_EQ(problem.optimizer().LossScale(), 32768);
  EXPECT_TRUE(SameBits(problem.Weights(0), a));
  EXPECT_TRUE(SameBits(problem.Weights(1), b));
  EXPECT_EQ(StateOf(problem.optimizer(), "b"), state);
  // The next one is a first step.
  EXPECT_FALSE(problem.DrawnStep(1e-2, 1, 32768).skipped);
  other.DrawnStep(1e-2, 1);
  EXPECT_TRUE(SameBits(problem.Weights(0), other.Weights(0)));
  EXPECT_TRUE(SameBits(problem.Weights(1), other.Weights(1)));
}

// Only the tensor stays: weights (decay too), moments and its count of steps.
TEST(OptimizerSkips, TensorSkipsTheTensorAlone) {
  const LossScalerConfig fixed = Scaling(LossScaling::kTensor, 1024);
  Problem problem({}, kTwo, fixed), clean({}, kTwo, fixed);
  problem.DrawGradients(0, 1024);
  problem.Gradient(0)[4] = std::nanf("");
  const Floats a = problem.WeightValues(0);
  const auto state = StateOf(problem.optimizer(), "a");
  const OptimizerStep& step = problem.optimizer().Step(1e-2, 0);
  EXPECT_FALSE(step.skipped);
  EXPECT_FALSE(step.finite);
  EXPECT_TRUE(step.tensors[0].skipped);
  EXPECT_FALSE(step.tensors[1].skipped);
  EXPECT_EQ(step.tensors[0].gradient_norm, HUGE_VAL);
  EXPECT_EQ(step.gradient_norm, step.tensors[1].gradient_norm) << "of those that move";
  EXPECT_EQ(problem.optimizer().LossScale(), 1024);
  EXPECT_TRUE(SameBits(problem.Weights(0), a));
  EXPECT_EQ(StateOf(problem.optimizer(), "a"), state);
  clean.DrawnStep(1e-2, 0, 1024);
  EXPECT_TRUE(SameBits(problem.Weights(1), clean.Weights(1)));
  // In the next step it is at t = 1 and the other at t = 2.
  Problem fresh({}, kTwo, fixed);
  problem.DrawnStep(1e-2, 1, 1024);
  clean.DrawnStep(1e-2, 1, 1024);
  fresh.DrawnStep(1e-2, 1, 1024);
  EXPECT_TRUE(SameBits(problem.Weights(0), fresh.Weights(0)));
  EXPECT_TRUE(SameBits(problem.Weights(1), clean.Weights(1)));
}

TEST(OptimizerSkips, TensorClipsByTheNormOfThoseThatMove) {
  OptimizerConfig config;
  config.kind = OptimizerKind::kSgd;
  config.beta1 = 0;
  config.weight_decay = 0;
  config.clip_norm = 1;
  Problem problem(config,
                  {{"a", ParameterRole::kMatrix, 1, 2}, {"b", ParameterRole::kMatrix, 1, 2}},
                  Scaling(LossScaling::kTensor, 4));
  problem.SetWeights({0, 0}, 1);
  problem.SetGradient({4e30f, kInfinity}, 0);
  problem.SetGradient({12, 16}, 1);  // 3, 4
  EXPECT_EQ(problem.optimizer().Step(1, 0).clip_factor, 0.2);
  EXPECT_NEAR(problem.Weights(1)[0], -0.6, 1e-7);
  EXPECT_NEAR(problem.Weights(1)[1], -0.8, 1e-7);
}

// Finite elements whose unscaled values would overflow count as not finite.
TEST(OptimizerSkips, UnscalingDoesNotOverflow) {
  Problem problem({}, kTwo, Scaling(LossScaling::kTensor, 0x1p-100));
  problem.DrawGradients(0, 0x1p-100f);
  problem.Gradient(0)[2] = 0x1p40f;
  const Floats a = problem.WeightValues(0), b = problem.WeightValues(1);
  const OptimizerStep& step = problem.optimizer().Step(1e-2, 0);
  EXPECT_TRUE(step.tensors[0].skipped);
  EXPECT_FALSE(step.finite);
  EXPECT_TRUE(SameBits(problem.Weights(0), a));
  EXPECT_FALSE(SameBits(problem.Weights(1), b));
}

// Squares that overflow make a direction of zero, not a NaN; nothing aborts.
TEST(OptimizerSkips, HugeFiniteGradientsAreSteps) {
  OptimizerConfig config;
  config.weight_decay = 0;
  Problem problem(config, kTwo);
  problem.DrawGradients(0);
  problem.Gradient(0)[1] = 1e30f;
  const float before = problem.Weights(0)[1];
  const OptimizerStep& step = problem.optimizer().Step(1e-2, 0);
  EXPECT_TRUE(step.finite);
  EXPECT_EQ(problem.Weights(0)[1], before);
  EXPECT_EQ(step.tensors[0].weights.status, UpdateStatus::kOk);
}

}  // namespace
}  // namespace numsim
