// AdamW, SGD and Lion against scalar loops over the published formulas: in float64, with a
// tolerance, and in float32, for the bits. What holds for every optimiser.
#include "numsim/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "tests/support/misuse.h"
#include "tests/support/optimizer_problem.h"

namespace numsim {
namespace {

using optimizer_problem::Floats;
using optimizer_problem::OneMatrix;
using optimizer_problem::Problem;

OptimizerConfig Config(OptimizerKind kind) {
  OptimizerConfig config;
  config.kind = kind;
  return config;
}

double Wide(double x) { return static_cast<double>(static_cast<float>(x)); }

// Decoupled weight decay, algorithm 2 of [AdamW]: theta -= lr (m_hat / (sqrt(v_hat) + eps) + wd
// theta).
struct AdamWReference {
  double beta1, beta2, epsilon, decay;
  std::vector<double> theta, m, v;
  int t = 0;

  void Step(std::span<const float> g, double lr) {
    ++t;
    for (size_t i = 0; i < theta.size(); ++i) {
      const double x = static_cast<double>(g[i]);
      m[i] = beta1 * m[i] + (1 - beta1) * x;
      v[i] = beta2 * v[i] + (1 - beta2) * x * x;
      const double mean = m[i] / (1 - std::pow(beta1, t));
      const double square = v[i] / (1 - std::pow(beta2, t));
      theta[i] -= lr * (mean / (std::sqrt(square) + epsilon) + decay * theta[i]);
    }
  }
};

TEST(OptimizerAdamW, FollowsThePaperInFloat64) {
  OptimizerConfig config = Config(OptimizerKind::kAdamW);
  config.beta2 = 0.99;
  config.epsilon = 1e-3;
  constexpr size_t n = 77;
  Problem problem(config, OneMatrix(n));
  AdamWReference reference{
      Wide(0.9), Wide(0.99), 1e-3, 0.1, {}, std::vector<double>(n), std::vector<double>(n)};
  for (const float w : problem.Weights()) reference.theta.push_back(static_cast<double>(w));
  for (uint64_t step = 0; step < 40; ++step) {
    problem.DrawGradients(step);
    reference.Step(problem.Gradient(), 1e-2);
    problem.optimizer().Step(1e-2, step);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(static_cast<double>(problem.Weights()[i]), reference.theta[i], 4e-7) << step;
    }
  }
}

// The arithmetic of optimizer.h and update_rule.h, operation by operation.
TEST(OptimizerAdamW, HasTheBitsOfAScalarTranscription) {
  OptimizerConfig config = Config(OptimizerKind::kAdamW);
  config.weight_decay = 0.3;
  constexpr size_t n = 5003;  // more than a block, and a tail
  Problem problem(config, OneMatrix(n));
  Floats w = problem.WeightValues(), m(n), v(n);
  const float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, lr = 3e-3f;
  const float share1 = 1.0f - beta1, share2 = 1.0f - beta2;
  double power1 = 1, power2 = 1;
  for (uint64_t step = 0; step < 6; ++step) {
    problem.DrawGradients(step);
    power1 *= static_cast<double>(beta1);
    power2 *= static_cast<double>(beta2);
    const auto correction1 = static_cast<float>(1 - power1);
    const auto correction2 = static_cast<float>(1 - power2);
    for (size_t i = 0; i < n; ++i) {
      const float g = problem.Gradient()[i];
      const float kept = beta1 * m[i], added = share1 * g;
      m[i] = kept + added;
      const float square = g * g;
      const float kept_square = beta2 * v[i], added_square = share2 * square;
      v[i] = kept_square + added_square;
      const float mean = m[i] / correction1;
      const float root = std::sqrt(v[i] / correction2);
      const float u = -(mean / (root + epsilon));
      const double pull = static_cast<double>(0.3f) * static_cast<double>(w[i]);
      const auto decayed = static_cast<float>(static_cast<double>(u) - pull);
      const float move = lr * decayed;
      w[i] = w[i] + move;
    }
    problem.optimizer().Step(static_cast<double>(lr), step);
    ASSERT_TRUE(SameBits(problem.Weights(), w)) << "step " << step;
  }
}

TEST(OptimizerAdamW, FirstStepIsTheLearningRateWhateverTheGradient) {
  OptimizerConfig config = Config(OptimizerKind::kAdamW);
  config.weight_decay = 0;
  Problem problem(config, OneMatrix(4));
  problem.SetWeights({1, 1, 1, 1});
  problem.SetGradient({1e-3f, -7, 1e4f, 0});
  const OptimizerStep& step = problem.optimizer().Step(0.125, 0);
  EXPECT_NEAR(problem.Weights()[0], 0.875, 1e-5);
  EXPECT_NEAR(problem.Weights()[1], 1.125, 1e-6);
  EXPECT_NEAR(problem.Weights()[2], 0.875, 1e-6);
  EXPECT_EQ(problem.Weights()[3], 1);
  EXPECT_NEAR(step.tensors[0].update_rms, std::sqrt(0.75), 1e-5);
  EXPECT_NEAR(step.tensors[0].max_update, 1, 1e-6);
  EXPECT_NEAR(step.tensors[0].rms, std::sqrt(0.75), 1e-5) << "g^2 equals the corrected v";
}

// beta2 = 1 - t^-1 makes v the plain mean of the squares so far; it is not corrected.
TEST(OptimizerAdamW, ScheduledBeta2AveragesWithoutCorrection) {
  OptimizerConfig config = Config(OptimizerKind::kAdamW);
  config.beta2_decay = 1;
  config.beta1 = 0;
  config.weight_decay = 0;
  Problem problem(config, OneMatrix(1));
  double theta = 0, squares = 0;
  problem.SetWeights({0});
  const Floats gradients = {3, -1, 0.5f, 4, 2};
  for (uint64_t step = 0; step < gradients.size(); ++step) {
    const double g = static_cast<double>(gradients[step]);
    squares += g * g;
    theta -= 0.01 * g / std::sqrt(squares / static_cast<double>(step + 1));
    problem.SetGradient({gradients[step]});
    problem.optimizer().Step(0.01, step);
    EXPECT_NEAR(problem.Weights()[0], theta, 1e-8) << step;
  }
}

TEST(OptimizerAdamW, ScheduledBeta2HasThePowerOfAdaFactor) {
  OptimizerConfig config = Config(OptimizerKind::kAdamW);
  config.beta2_decay = 0.8;
  config.beta1 = 0;
  config.weight_decay = 0;
  Problem problem(config, OneMatrix(1));
  problem.SetWeights({0});
  double theta = 0, v = 0;
  for (uint64_t step = 0; step < 30; ++step) {
    problem.DrawGradients(step);
    const double g = static_cast<double>(problem.Gradient()[0]);
    const double beta2 = 1 - std::pow(static_cast<double>(step + 1), -0.8);
    v = beta2 * v + (1 - beta2) * g * g;
    theta -= 0.01 * g / std::sqrt(v);
    problem.optimizer().Step(0.01, step);
    ASSERT_NEAR(problem.Weights()[0], theta, 2e-7) << step;
  }
}

TEST(OptimizerSgd, SumsGradientsAndDecaysByTheLearningRate) {
  OptimizerConfig config = Config(OptimizerKind::kSgd);
  config.beta1 = 0.5;
  config.weight_decay = 0.25;
  Problem problem(config, OneMatrix(2));
  problem.SetWeights({1, -2});
  problem.SetGradient({4, 0});
  problem.optimizer().Step(0.125, 0);  // m = 4, 0; w -= (4, 0) / 8 + w / 32
  EXPECT_EQ(problem.WeightValues(), (Floats{1 - 0.5f - 0.03125f, -2 + 0.0625f}));
  problem.SetGradient({-1, 1});
  const OptimizerStep& step = problem.optimizer().Step(0.125, 1);  // m = 1, 1
  EXPECT_EQ(problem.WeightValues(),
            (Floats{0.46875f - 0.125f - 0.46875f / 32, -1.9375f - 0.125f + 1.9375f / 32}));
  EXPECT_EQ(step.tensors[0].update_rms, 1);
  EXPECT_EQ(step.tensors[0].max_update, 1);
  EXPECT_EQ(step.tensors[0].rms, 0) << "no second moment";
}

TEST(OptimizerLion, MovesBySigns) {
  OptimizerConfig config = Config(OptimizerKind::kLion);
  config.beta1 = 0.5;
  config.beta2 = 0.75;
  config.weight_decay = 0;
  Problem problem(config, OneMatrix(5));
  problem.SetWeights({0, 0, 0, 0, 0});
  problem.SetGradient({8, -1e-20f, 0, 4, 4});
  problem.optimizer().Step(0.25, 0);  // m: 2, ., 0, 1, 1
  EXPECT_EQ(problem.WeightValues(), (Floats{-0.25f, 0.25f, 0, -0.25f, -0.25f}));
  // beta1 m + (1 - beta1) g: 1 - 2 < 0; the direction has its own average.
  problem.SetGradient({-4, 0, 0, -1, -3});
  problem.optimizer().Step(0.25, 1);  // m: 0.5, ., 0, 0.5, 0
  EXPECT_EQ(problem.Weights()[0], 0);
  EXPECT_EQ(problem.Weights()[1], 0.5f);
  EXPECT_EQ(problem.Weights()[3], -0.25f) << "0.5 * 1 - 0.5 * 1 is no direction";
  EXPECT_EQ(problem.Weights()[4], 0);
  problem.SetGradient({0, 0, 0, -0.25f, 0});
  problem.optimizer().Step(0.25, 2);
  EXPECT_EQ(problem.WeightValues(), (Floats{-0.25f, 0.75f, 0, -0.5f, 0}));
}

TEST(OptimizerLion, DecaysOnTopOfTheSign) {
  OptimizerConfig config = Config(OptimizerKind::kLion);
  config.weight_decay = 0.5;
  Problem problem(config, OneMatrix(2));
  problem.SetWeights({2, 2});
  problem.SetGradient({1, 0});
  problem.optimizer().Step(0.25, 0);
  EXPECT_EQ(problem.WeightValues(), (Floats{2 - 0.25f - 0.25f, 2 - 0.25f}));
}

TEST(Optimizer, ClippingScalesAllGradientsToTheNorm) {
  OptimizerConfig config = Config(OptimizerKind::kSgd);
  config.beta1 = 0;
  config.weight_decay = 0;
  config.clip_norm = 1.25;
  Problem problem(config, {{"a", ParameterRole::kMatrix, 1, 1}, {"b", ParameterRole::kGain, 1, 2}});
  problem.SetWeights({0}, 0);
  problem.SetWeights({0, 0}, 1);
  problem.SetGradient({3}, 0);
  problem.SetGradient({0, -4}, 1);
  const OptimizerStep& step = problem.optimizer().Step(1, 0);
  EXPECT_EQ(step.gradient_norm, 5);
  EXPECT_EQ(step.clip_factor, 0.25);
  EXPECT_EQ(step.tensors[0].gradient_norm, 3);
  EXPECT_EQ(step.tensors[1].gradient_norm, 4);
  EXPECT_EQ(problem.WeightValues(0), (Floats{-0.75f}));
  EXPECT_EQ(problem.WeightValues(1), (Floats{0, 1}));
  // A norm that is not larger stays.
  problem.SetGradient({0.75f}, 0);
  problem.SetGradient({0, 1}, 1);
  EXPECT_EQ(problem.optimizer().Step(1, 1).clip_factor, 1);
  EXPECT_EQ(problem.WeightValues(0), (Floats{-1.5f}));
}

TEST(Optimizer, DecayFilterChoosesByRole) {
  const std::vector<ParameterRole> roles = {ParameterRole::kMatrix,
                                            ParameterRole::kEmbedding,
                                            ParameterRole::kGain,
                                            ParameterRole::kBias,
                                            ParameterRole::kScalar};
  for (const auto filter : {DecayFilter::kMatrices, DecayFilter::kAll, DecayFilter::kNone}) {
    OptimizerConfig config = Config(OptimizerKind::kAdamW);
    config.decay_filter = filter;
    config.weight_decay = 0.5;
    std::vector<optimizer_problem::TensorShape> shapes;
    for (const ParameterRole role : roles)
      shapes.push_back({std::string(ToString(role)), role, 1, 1});
    Problem problem(config, shapes);
    for (size_t i = 0; i < roles.size(); ++i) problem.SetWeights({8}, i);
    problem.optimizer().Step(0.5, 0);  // gradients are zero
    for (size_t i = 0; i < roles.size(); ++i) {
      const bool matrix = i < 2;
      const bool decays =
          filter == DecayFilter::kAll || (filter == DecayFilter::kMatrices && matrix);
      EXPECT_EQ(problem.Weights(i)[0], decays ? 6 : 8)
          << ToString(filter) << " " << ToString(roles[i]);
    }
  }
}

TEST(Optimizer, LearningRateZeroMovesNothing) {
  Problem problem(Config(OptimizerKind::kAdamW), OneMatrix(100));
  const Floats before = problem.WeightValues();
  const OptimizerStep& step = problem.DrawnStep(0, 0);
  EXPECT_EQ(step.tensors[0].weights.status, UpdateStatus::kZeroUpdate);
  EXPECT_TRUE(SameBits(problem.Weights(), before));
}

// Tensors of many blocks, so that threads share each of them.
TEST(Optimizer, ThreadsDoNotChangeBits) {
  const int threads = ThreadCount();
  for (const auto kind : {OptimizerKind::kAdamW,
                          OptimizerKind::kStableAdamW,
                          OptimizerKind::kSgd,
                          OptimizerKind::kLion}) {
    for (const char* const moments : {"fp32", "e5m2@tensor+sr"}) {
      OptimizerConfig config = Config(kind);
      config.m = config.v = ParseMomentFormat(moments);
      config.clip_norm = 0.1;
      config.stable.global = kind == OptimizerKind::kStableAdamW;
      const std::vector<optimizer_problem::TensorShape> shapes = {
          {"a", ParameterRole::kMatrix, 300, 401}, {"b", ParameterRole::kGain, 1, 70001}};
      SetThreadCount(1);
      Problem one(config, shapes), several(config, shapes);
      for (uint64_t step = 0; step < 3; ++step) {
        SetThreadCount(1);
        const OptimizerStep a = one.DrawnStep(1e-2, step);
        SetThreadCount(4);
        const OptimizerStep& b = several.DrawnStep(1e-2, step);
        EXPECT_EQ(a.gradient_norm, b.gradient_norm);
        for (size_t i = 0; i < 2; ++i) {
          ASSERT_TRUE(SameBits(one.Weights(i), several.Weights(i))) << ToString(kind) << moments;
          EXPECT_EQ(a.tensors[i].rms, b.tensors[i].rms);
          EXPECT_EQ(a.tensors[i].update_rms, b.tensors[i].update_rms);
          EXPECT_EQ(a.tensors[i].weights.achieved_norm, b.tensors[i].weights.achieved_norm);
        }
      }
    }
  }
  SetThreadCount(threads);
}

TEST(Optimizer, LearningRatesAndTensorsThatDoNotExistThrow) {
  Problem problem(Config(OptimizerKind::kSgd), OneMatrix(3));
  const Floats before = problem.WeightValues();
  ExpectErrors({
      {[&] { problem.optimizer().Step(-1, 0); },
       "Optimizer::Step: learning_rate is -1, expected finite and >= 0"},
      // Beyond float32, in which steps are computed.
      {[&] { problem.optimizer().Step(1e39, 0); },
       "Optimizer::Step: learning_rate is 1e+39, expected finite and >= 0"},
      {[&] { problem.optimizer().StoredBytes(1); },
       "Optimizer::StoredBytes: tensor 1, expected less than 1"},
  });
  EXPECT_EQ(problem.WeightValues(), before);
}

}  // namespace
}  // namespace numsim
