// CurvatureOfNextStep against second differences of the loss, and against Adam's sums written out.
#include "numsim/analysis/curvature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numsim/analysis/step_replay.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

// Of the central difference in H g, whose step is 1e-4, where third derivatives are largest.
constexpr double kTolerance = 3e-5;

using Vectors = std::vector<NamedGradient<double>>;

double NormOf(const Vectors& x) {
  double square = 0;
  for (const NamedGradient<double>& one : x) {
    for (const double value : one.values) square += value * value;
  }
  return std::sqrt(square);
}

// The gradient of the next step's loss, divided by its norm.
Vectors UnitGradient(const StepReplay& replay) {
  Vectors unit = replay.Run<double>(Float32Precision()).gradients;
  const double norm = NormOf(unit);
  for (NamedGradient<double>& one : unit) {
    for (double& value : one.values) value /= norm;
  }
  return unit;
}

// The second derivative of the loss along the gradient, from losses alone.
double SecondDerivative(const StepReplay& replay) {
  const Vectors unit = UnitGradient(replay);
  const auto loss = [&](double distance) { return replay.RunMoved(unit, distance).loss.Mean(); };
  const auto difference = [&](double d) { return (loss(d) - 2 * loss(0) + loss(-d)) / (d * d); };
  constexpr double kDistance = 3e-4;
  return (4 * difference(kDistance) - difference(2 * kDistance)) / 3;
}

// (1 - beta1) / ((1 + beta1) (1 - beta1^t)) for the step after `steps`.
double MomentumFactor(const OptimizerConfig& config, uint64_t steps) {
  const double beta1 = config.beta1;
  return (1 - beta1) / ((1 + beta1) * (1 - std::pow(beta1, static_cast<double>(steps + 1))));
}

TrainConfig StudentConfig() {
  TrainConfig config = TinyConfig();
  config.model.kind = ModelKind::kMlp;
  config.data.kind = DataKind::kGaussian;
  config.data.size = 256;
  config.data.features = 16;
  return config;
}

std::vector<TrainConfig> Configs() {
  TrainConfig gpt = TinyConfig(), student = StudentConfig(), scaled = TinyConfig();
  gpt.model.kind = ModelKind::kGpt;
  gpt.optimizer.beta1 = 0.5;
  gpt.optimizer.beta2 = 0.99;
  student.optimizer.beta1 = 0;
  student.stress.input_tail = 1;
  scaled.loss_scaler.kind = LossScaling::kDynamic;
  return {TinyConfig(), gpt, student, scaled};
}

// With an epsilon beside which v is nothing, the preconditioner is 1 / epsilon.
TEST(Curvature, UnderAHugeEpsilonIsTheSecondDerivativeOfTheLoss) {
  constexpr double kEpsilon = 1e6;
  for (TrainConfig config : Configs()) {
    config.optimizer.epsilon = kEpsilon;
    config.optimizer.weight_decay = 0;
    config.schedule.peak = 1e5;  // of steps that are divided by epsilon
    Trainer trainer(config, OpenShared(config.data));
    for (const uint64_t steps : {0, 1, 5}) {
      StepUntil(trainer, steps);
      const double second = SecondDerivative(StepReplay(trainer));
      const double expected = MomentumFactor(config.optimizer, steps) * second;
      const StepCurvature found = CurvatureOfNextStep(trainer);
      EXPECT_GT(std::abs(second), 1e-3);
      EXPECT_NEAR(found.curvature * kEpsilon, expected, kTolerance * std::abs(expected)) << steps;
    }
  }
}

// v of every step so far, from the gradients that the trainer left.
class SecondMoments {
 public:
  explicit SecondMoments(const OptimizerConfig& config) : beta2_(config.beta2) {}

  void Add(const Trainer& trainer) {
    const double scale = trainer.last_update().loss_scale;
    size_t i = 0;
    for (const Parameter<float>& parameter : trainer.model().parameters()) {
      std::vector<double> gradient;
      for (const float g : parameter.gradient.View().Span()) gradient.push_back(g / scale);
      Add(gradient, i++);
    }
    ++steps_;
  }

  // The bias-corrected v of one more step with these gradients.
  std::vector<std::vector<double>> Next(const Vectors& gradients) const {
    SecondMoments next = *this;
    size_t i = 0;
    for (const NamedGradient<double>& gradient : gradients) next.Add(gradient.values, i++);
    const double correction = 1 - std::pow(beta2_, static_cast<double>(steps_ + 1));
    for (std::vector<double>& v : next.v_) {
      for (double& value : v) value /= correction;
    }
    return next.v_;
  }

 private:
  void Add(const std::vector<double>& gradient, size_t tensor) {
    if (v_.size() <= tensor) v_.emplace_back(gradient.size());
    for (size_t k = 0; k < gradient.size(); ++k) {
      double& v = v_[tensor][k];
      v = beta2_ * v + (1 - beta2_) * gradient[k] * gradient[k];
    }
  }

  double beta2_;
  uint64_t steps_ = 0;
  std::vector<std::vector<double>> v_;
};

double CurvatureByHand(const Trainer& trainer, const SecondMoments& moments) {
  const OptimizerConfig& config = trainer.config().optimizer;
  const StepReplay replay(trainer);
  const Vectors unit = UnitGradient(replay);
  const Vectors gradient = replay.Run<double>(Float32Precision()).gradients;
  // H u by two central differences, so that the larger part of their error cancels.
  constexpr double kDistance = 3e-4;
  const Vectors one[] = {replay.RunMoved(unit, kDistance).gradients,
                         replay.RunMoved(unit, -kDistance).gradients};
  const Vectors two[] = {replay.RunMoved(unit, 2 * kDistance).gradients,
                         replay.RunMoved(unit, -2 * kDistance).gradients};
  const std::vector<std::vector<double>> v = moments.Next(gradient);
  double sum = 0;
  for (size_t i = 0; i < unit.size(); ++i) {
    for (size_t k = 0; k < unit[i].values.size(); ++k) {
      const double narrow = (one[0][i].values[k] - one[1][i].values[k]) / (2 * kDistance);
      const double wide = (two[0][i].values[k] - two[1][i].values[k]) / (4 * kDistance);
      const double hessian = (4 * narrow - wide) / 3;
      sum += unit[i].values[k] * hessian / (std::sqrt(v[i][k]) + config.epsilon);
    }
  }
  return MomentumFactor(config, trainer.steps_taken()) * sum;
}

TEST(Curvature, IsTheSumOverAllWeights) {
  for (const TrainConfig& config : Configs()) {
    Trainer trainer(config, OpenShared(config.data));
    SecondMoments moments(config.optimizer);
    for (uint64_t steps = 0; steps < 6; ++steps) {
      const StepCurvature found = CurvatureOfNextStep(trainer);
      const double expected = CurvatureByHand(trainer, moments);
      EXPECT_NEAR(found.curvature, expected, kTolerance * std::abs(expected)) << steps;
      EXPECT_EQ(found.learning_rate, trainer.config().schedule.At(steps));
      EXPECT_EQ(found.Times(), found.curvature * found.learning_rate);
      trainer.Step();
      moments.Add(trainer);
    }
  }
}

// A factor of all gradients is one of H and of the root of v.
TEST(Curvature, DoesNotDependOnTheScaleOfTheLoss) {
  TrainConfig config = StudentConfig();
  config.optimizer.epsilon = 1e-30;
  const auto curvature = [&config](double factor) {
    config.stress.jump_loss = factor;
    const Trainer trainer(config, OpenShared(config.data));
    return CurvatureOfNextStep(trainer).curvature;
  };
  const double plain = curvature(1);
  EXPECT_GT(std::abs(plain), 1e-3);
  for (const double factor : {0.01, 1000.0}) {
    EXPECT_NEAR(curvature(factor), plain, 1e-6 * std::abs(plain)) << factor;
  }
}

// Logits that are 0 whatever stands before: no weight has a gradient.
TEST(Curvature, OfAGradientOfZeroIsZero) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  for (Parameter<float>& parameter : trainer.model().parameters()) {
    if (!parameter.name.starts_with("final_norm") && !parameter.name.starts_with("head")) continue;
    for (float& value : parameter.value.View().Span()) value = 0;
  }
  ASSERT_EQ(NormOf(StepReplay(trainer).Run<double>(Float32Precision()).gradients), 0);
  const StepCurvature found = CurvatureOfNextStep(trainer);
  EXPECT_EQ(found.curvature, 0);
  EXPECT_EQ(found.learning_rate, trainer.config().schedule.At(0));
  EXPECT_EQ(found.Times(), 0);
}

TEST(Curvature, OfOtherOptimisersIsAnErrorThatNamesTheKey) {
  const auto error = [](auto change) {
    TrainConfig config = TinyConfig();
    change(config);
    const Trainer trainer(config, OpenShared(config.data));
    return ErrorOf([&] { CurvatureOfNextStep(trainer); });
  };
  EXPECT_EQ(error([](TrainConfig&) {}), kNoError);
  for (const OptimizerKind kind :
       {OptimizerKind::kStableAdamW, OptimizerKind::kSgd, OptimizerKind::kLion}) {
    ExpectMessage(error([&](TrainConfig& c) { c.optimizer.kind = kind; }),
                  {"optimizer.kind: ", std::string(ToString(kind)), "expected adamw"});
  }
  ExpectMessage(error([](TrainConfig& c) { c.optimizer.v = ParseMomentFormat("e5m2"); }),
                {"optimizer.v: ", "fp32"});
  ExpectMessage(error([](TrainConfig& c) { c.optimizer.beta2_decay = 0.8; }),
                {"optimizer.beta2_decay: ", "0"});
  ExpectMessage(error([](TrainConfig& c) { c.train.accumulate = 2; }), {"train.accumulate: "});
  // Other formats do not matter.
  EXPECT_EQ(error([](TrainConfig& c) { c.optimizer.m = ParseMomentFormat("e4m3fn"); }), kNoError);
}

TEST(Curvature, LeavesTheTrainerAsItWas) {
  for (const TrainConfig& config : Configs()) {
    const std::shared_ptr<const DataSource> data = OpenShared(config.data);
    Trainer quiet(config, data), watched(config, data);
    for (int step = 0; step < 6; ++step) {
      EXPECT_EQ(CurvatureOfNextStep(watched).curvature, CurvatureOfNextStep(watched).curvature);
      quiet.Step();
      watched.Step();
      EXPECT_EQ(TensorBytes(watched.Save()), TensorBytes(quiet.Save())) << step;
    }
    EXPECT_EQ(TelemetryText(watched.telemetry()), TelemetryText(quiet.telemetry()));
  }
}

}  // namespace
}  // namespace numsim
