// StableAdamW against Algorithm 2 of [SwitchBack], written down in float64 with the switches of the
// published variants, and each switch in a case that it decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "numsim/optim/optimizer.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using optimizer_problem::Floats;
using optimizer_problem::OneMatrix;
using optimizer_problem::Problem;
using optimizer_problem::TensorShape;

using Doubles = std::vector<double>;

OptimizerConfig Stable() {
  OptimizerConfig config;
  config.kind = OptimizerKind::kStableAdamW;
  config.beta2 = 0.99;
  config.epsilon = 1e-6;
  config.weight_decay = 0.2;
  return config;
}

// Algorithm 2, for one tensor; `of` chooses the variant.
struct Algorithm2 {
  double beta1, beta2, epsilon, lambda;
  StableOptions of;
  Doubles theta, v, u;
  int t = 0;
  double rms = 0;

  explicit Algorithm2(const OptimizerConfig& config, std::span<const float> weights)
      : beta1(static_cast<double>(static_cast<float>(config.beta1))),
        beta2(static_cast<double>(static_cast<float>(config.beta2))),
        epsilon(config.epsilon),
        lambda(config.weight_decay),
        of(config.stable),
        v(weights.size()),
        u(weights.size()) {
    for (const float w : weights) theta.push_back(static_cast<double>(w));
  }

  void Step(std::span<const float> gradient, double alpha) {
    ++t;
    const double hat1 = beta1 * (1 - std::pow(beta1, t - 1)) / (1 - std::pow(beta1, t));
    const double hat2 = beta2 * (1 - std::pow(beta2, t - 1)) / (1 - std::pow(beta2, t));
    double sum = 0;
    for (size_t i = 0; i < theta.size(); ++i) {
      const double g = static_cast<double>(gradient[i]), before = u[i];
      v[i] = hat1 * v[i] + (1 - hat1) * g;
      u[i] = hat2 * u[i] + (1 - hat2) * g * g;
      const double second = of.previous_u ? before : u[i];
      if (of.of_update) {
        sum += std::pow(v[i] / (std::sqrt(u[i]) + epsilon) + lambda * theta[i], 2);
      } else if (of.of_moment && of.epsilon_added) {
        sum += std::pow(v[i] / (std::sqrt(second) + epsilon), 2);
      } else if (of.of_moment) {
        sum += v[i] * v[i] / std::max(second, epsilon * epsilon);
      } else if (of.epsilon_added) {
        sum += std::pow(g / (std::sqrt(second) + epsilon), 2);
      } else {
        sum += g * g / std::max(second, epsilon * epsilon);
      }
    }
    rms = std::sqrt(sum / static_cast<double>(theta.size()));
    const double eta = alpha / std::max(1.0, rms / of.threshold);
    for (size_t i = 0; i < theta.size(); ++i) {
      const double decay = (of.clipped_decay ? eta : alpha) * lambda * theta[i];
      theta[i] -= decay + eta * v[i] / (std::sqrt(u[i]) + epsilon);
    }
  }
};

constexpr uint64_t kJump = 30;  // the step of Follow whose gradient is a thousand times as large

// Small gradients for a while, then jumps: the case that update clipping is for. Compares every
// step with the algorithm and returns its RMS.
Doubles Follow(const OptimizerConfig& config) {
  constexpr size_t n = 45;
  Problem problem(config, OneMatrix(n));
  Algorithm2 reference(config, problem.Weights());
  Doubles rms;
  for (uint64_t step = 0; step < 60; ++step) {
    problem.DrawGradients(step, step == kJump ? 1.0f : step == 50 ? 1e-2f : 1e-3f);
    reference.Step(problem.Gradient(), 2e-2);
    const OptimizerStep& taken = problem.optimizer().Step(2e-2, step);
    EXPECT_NEAR(taken.tensors[0].rms / reference.rms, 1, 2e-5) << "step " << step;
    rms.push_back(taken.tensors[0].rms);
    for (size_t i = 0; i < n; ++i) {
      const double weight = static_cast<double>(problem.Weights()[i]);
      EXPECT_NEAR(weight, reference.theta[i], 2e-6) << "step " << step;
      if (std::abs(weight - reference.theta[i]) > 2e-6) return rms;
    }
  }
  return rms;
}

// The jump is one that clipping decides: its RMS is near the greatest that u >= (1 - hat) g^2
// allows, far above the threshold of 1.
TEST(StableAdamW, FollowsAlgorithm2) {
  const Doubles rms = Follow(Stable());
  ASSERT_EQ(rms.size(), 60u);
  const double hat = 0.99 * (1 - std::pow(0.99, kJump)) / (1 - std::pow(0.99, kJump + 1));
  const double most = 1 / std::sqrt(1 - hat);  // 5.2
  EXPECT_NEAR(rms[kJump] / most, 1, 0.03);
  EXPECT_EQ(*std::max_element(rms.begin(), rms.end()), rms[kJump]);
}

TEST(StableAdamW, FollowsItWithEachSwitch) {
  const auto with = [](const std::function<void(StableOptions&)>& change) {
    OptimizerConfig config = Stable();
    change(config.stable);
    return config;
  };
  Follow(with([](StableOptions& s) { s.clipped_decay = false; }));
  Follow(with([](StableOptions& s) { s.epsilon_added = true; }));
  Follow(with([](StableOptions& s) { s.previous_u = true; }));
  Follow(with([](StableOptions& s) { s.of_update = true; }));
  Follow(with([](StableOptions& s) { s.of_moment = true; }));
  Follow(with([](StableOptions& s) { s.of_moment = s.epsilon_added = true; }));
  Follow(with([](StableOptions& s) { s.threshold = 3; }));
  Follow(with([](StableOptions& s) { s.clipped_decay = s.previous_u = s.epsilon_added = false; }));
  Follow(with([](StableOptions& s) {
    s.clipped_decay = false;
    s.epsilon_added = s.previous_u = true;
  }));
}

// g = epsilon: max(u, epsilon^2) leaves RMS 1, an added epsilon halves it.
TEST(StableAdamW, EpsilonIsABoundOrAnAddend) {
  for (const bool added : {false, true}) {
    OptimizerConfig config = Stable();
    config.stable.epsilon_added = added;
    Problem problem(config, OneMatrix(1));
    problem.SetGradient({1e-6f});
    EXPECT_NEAR(problem.optimizer().Step(1, 0).tensors[0].rms, added ? 0.5 : 1, 1e-6);
  }
  // Below epsilon the bound is what divides.
  Problem problem(Stable(), OneMatrix(1));
  problem.SetGradient({1e-7f});
  EXPECT_NEAR(problem.optimizer().Step(1, 0).tensors[0].rms, 0.1, 1e-6);
}

// An epsilon whose square is no float32.
TEST(StableAdamW, EpsilonIsNotSquaredInFloat32) {
  OptimizerConfig config = Stable();
  config.epsilon = 1e-30;
  Problem problem(config, OneMatrix(2));
  problem.SetGradient({0, 0});
  EXPECT_EQ(problem.optimizer().Step(1, 0).tensors[0].rms, 0);
}

// u_0 = 0, so that the RMS of the first step is |g| / epsilon and the step next to nothing.
TEST(StableAdamW, WithThePreviousUTheFirstStepIsNearZero) {
  for (const bool previous : {false, true}) {
    OptimizerConfig config = Stable();
    config.weight_decay = 0;
    config.stable.previous_u = previous;
    Problem problem(config, OneMatrix(1));
    problem.SetWeights({0});
    problem.SetGradient({0.5f});
    const OptimizerStep& step = problem.optimizer().Step(1, 0);
    EXPECT_NEAR(step.tensors[0].rms, previous ? 5e5 : 1, 0.1);
    EXPECT_NEAR(problem.Weights()[0], previous ? -2e-6 : -1, 1e-5);
  }
}

// Without a gradient for the weights that decay only the decay moves them: by the clipped learning
// rate or the unclipped one.
TEST(StableAdamW, DecayTakesTheClippedOrTheUnclippedRate) {
  for (const bool clipped : {false, true}) {
    OptimizerConfig config = Stable();
    config.stable.clipped_decay = clipped;
    Problem problem(config, OneMatrix(2));
    problem.SetGradient({1e-3f, 0});
    for (uint64_t step = 0; step < 500; ++step) problem.optimizer().Step(0, step);
    problem.SetWeights({0, 1});
    problem.SetGradient({1, 0});
    const double rms = problem.optimizer().Step(0.5, 500).tensors[0].rms;
    EXPECT_NEAR(rms, 10 / std::sqrt(2), 0.05);
    EXPECT_NEAR(problem.Weights()[1], 1 - 0.5 * 0.2 / (clipped ? rms : 1), 1e-6);
  }
}

// RMS of the update with its decay: here the decay alone, 0.2 * 30.
TEST(StableAdamW, TheRmsOfTheUpdateHasTheDecayInIt) {
  OptimizerConfig config = Stable();
  config.stable.of_update = true;
  Problem problem(config, OneMatrix(3));
  problem.SetWeights({30, -30, 30});
  const OptimizerStep& step = problem.optimizer().Step(0.5, 0);
  EXPECT_NEAR(step.tensors[0].rms, 6, 1e-5);
  EXPECT_NEAR(problem.Weights()[0], 30 - 0.5, 1e-5);
}

// A calm tensor and one that jumps: each has its RMS, or both one, the mean over all elements.
TEST(StableAdamW, TheRmsIsOfATensorOrOfAll) {
  for (const bool global : {false, true}) {
    OptimizerConfig config = Stable();
    config.weight_decay = 0;
    config.stable.global = global;
    Problem problem(
        config, {{"calm", ParameterRole::kMatrix, 1, 3}, {"jumps", ParameterRole::kBias, 1, 1}});
    problem.SetGradient({0.1f, -0.1f, 0.1f}, 0);
    problem.SetGradient({0.1f}, 1);
    for (uint64_t step = 0; step < 1000; ++step) problem.optimizer().Step(0, step);
    problem.SetGradient({100}, 1);
    problem.SetWeights({0, 0, 0}, 0);
    problem.SetWeights({0}, 1);
    const OptimizerStep& step = problem.optimizer().Step(1, 1000);
    // u of the second is 0.01 + 0.01 (100^2 - 0.01): RMS 100 / sqrt(100.01); m = 10.09.
    const double own = 100 / std::sqrt(100.0099), all = std::sqrt((3 + own * own) / 4);
    EXPECT_NEAR(step.tensors[0].rms, global ? all : 1, 1e-3);
    EXPECT_NEAR(step.tensors[1].rms, global ? all : own, 1e-3);
    EXPECT_NEAR(problem.Weights(0)[0], -1 / (global ? all : 1), 1e-3);
    EXPECT_NEAR(problem.Weights(1)[0], -(10.09 / std::sqrt(100.0099)) / (global ? all : own), 1e-3);
  }
}

// Not all tensors have the same share of a global RMS: those that are skipped have none.
TEST(StableAdamW, TheGlobalRmsLeavesSkippedTensorsOut) {
  OptimizerConfig config = Stable();
  config.stable.global = true;
  LossScalerConfig scaler;
  scaler.kind = LossScaling::kTensor;
  scaler.initial = 1;
  Problem problem(config,
                  {{"bad", ParameterRole::kMatrix, 1, 8}, {"good", ParameterRole::kMatrix, 1, 2}},
                  scaler);
  problem.SetGradient({1, 1, 1, HUGE_VALF, 1, 1, 1, 1}, 0);
  problem.SetGradient({2, -3}, 1);
  const OptimizerStep& step = problem.optimizer().Step(1e-2, 0);
  EXPECT_TRUE(step.tensors[0].skipped);
  EXPECT_NEAR(step.tensors[1].rms, 1, 1e-6);
}

TEST(StableAdamW, TheThresholdIsWhatAStepIsDividedBy) {
  for (const double threshold : {0.25, 1.0, 4.0}) {
    OptimizerConfig config = Stable();
    config.weight_decay = 0;
    config.stable.threshold = threshold;
    Problem problem(config, OneMatrix(1));
    problem.SetWeights({0});
    problem.SetGradient({2});
    problem.optimizer().Step(1, 0);  // RMS 1, direction -1
    EXPECT_NEAR(problem.Weights()[0], -1 / std::max(1.0, 1 / threshold), 1e-5) << threshold;
  }
}

// u >= (1 - beta2_hat) g^2 bounds RMS by 1 / sqrt(1 - beta2_hat), and a jump gets near: 31.6, 10,
// 4.5, 2.2 for the beta2 of the table, so that 2.3 is out of reach of beta2 = 0.8.
TEST(StableAdamW, TheRmsIsBoundedAndAJumpReachesTheBound) {
  for (const double beta2 : {0.999, 0.99, 0.95, 0.8}) {
    OptimizerConfig config = Stable();
    config.beta2 = beta2;
    Problem problem(config, OneMatrix(33));
    double bound = 0, last = 0;
    constexpr int kSteps = 3000;
    for (int t = 1; t <= kSteps; ++t) {
      const bool jump = t == kSteps;
      const float scale = jump ? 1e4f : t % 7 == 0 ? 5.0f : 0.1f;
      const OptimizerStep& step = problem.DrawnStep(1e-3, static_cast<uint64_t>(t), scale);
      const double hat = beta2 * (1 - std::pow(beta2, t - 1)) / (1 - std::pow(beta2, t));
      bound = 1 / std::sqrt(1 - hat);
      last = step.tensors[0].rms;
      ASSERT_LE(last, bound * (1 + 1e-4)) << t;
    }
    EXPECT_GT(last, 0.98 * bound);
    if (beta2 == 0.8) {
      EXPECT_LT(last, 2.3);
    }
  }
}

// AdamW reports the RMS of Algorithm 2: with v and its bias corrected.
TEST(StableAdamW, AdamWReportsTheSameRmsAndTakesTheWholeStep) {
  for (const char* const of : {"g", "g over the previous u", "m"}) {
    const bool previous = of == std::string_view("g over the previous u");
    OptimizerConfig stable = Stable(), adam = Stable();
    adam.kind = OptimizerKind::kAdamW;
    stable.stable.threshold = 1e9;  // no clipping, so that the weights stay together too
    stable.stable.previous_u = adam.stable.previous_u = previous;
    stable.stable.of_moment = adam.stable.of_moment = of == std::string_view("m");
    Problem a(stable, OneMatrix(50)), b(adam, OneMatrix(50));
    for (uint64_t step = 0; step < 30; ++step) {
      const float scale = step == 20 ? 100 : 1;
      const double rms = a.DrawnStep(1e-3, step, scale).tensors[0].rms;
      EXPECT_NEAR(b.DrawnStep(1e-3, step, scale).tensors[0].rms / rms, 1, 1e-5) << step;
      for (size_t i = 0; i < 50; ++i) ASSERT_NEAR(a.Weights()[i], b.Weights()[i], 1e-6);
    }
  }
}

// Under the schedule, b2 of Algorithm 2 is the scheduled one: at lambda = 1 u is the mean square.
TEST(StableAdamW, ScheduledBeta2) {
  OptimizerConfig config = Stable();
  config.beta2_decay = 1;
  Problem problem(config, OneMatrix(1));
  const Floats gradients = {1, 1, 1, 5};
  double rms = 0;
  for (uint64_t step = 0; step < gradients.size(); ++step) {
    problem.SetGradient({gradients[step]});
    rms = problem.optimizer().Step(1e-3, step).tensors[0].rms;
  }
  EXPECT_NEAR(rms, 5 / std::sqrt(28.0 / 4), 1e-5);
}

}  // namespace
}  // namespace numsim
