#include "numsim/analysis/curvature.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/analysis/step_replay.h"
#include "numsim/base/error.h"
#include "numsim/optim/optimizer_state.h"

namespace numsim {
namespace {

// The length of the two steps of the central difference: its error is of the order of the square of
// this, and the gradients have more than ten digits.
constexpr double kStep = 1e-4;

void CheckOptimizer(const OptimizerConfig& config) {
  if (config.kind != OptimizerKind::kAdamW) {
    throw KeyError::Format("optimizer.kind", "{}, expected adamw", ToString(config.kind));
  }
  if (!config.v.IsExact()) throw KeyError("optimizer.v", "expected fp32");
  // v would be of clipped gradients, and g is not.
  if (config.clip_norm != 0) throw KeyError("optimizer.clip_norm", "expected 0");
  if (config.beta2_decay != 0) throw KeyError("optimizer.beta2_decay", "expected 0");
}

using Gradients = std::vector<NamedGradient<double>>;

double SquareOf(const Gradients& gradients) {
  double square = 0;
  for (const NamedGradient<double>& gradient : gradients) {
    for (const double g : gradient.values) square += g * g;
  }
  return square;
}

// Returns the vector of length 1.
Gradients Normalised(Gradients gradients, double length) {
  for (NamedGradient<double>& gradient : gradients) {
    for (double& g : gradient.values) g /= length;
  }
  return gradients;
}

}  // namespace

StepCurvature CurvatureOfNextStep(const Trainer& trainer) {
  const OptimizerConfig& config = trainer.config().optimizer;
  CheckOptimizer(config);
  StepCurvature result;
  result.learning_rate = trainer.config().schedule.At(trainer.steps_taken());
  const StepReplay replay(trainer);
  const Gradients gradients = replay.Run<double>(Float32Precision()).gradients;
  const double length = std::sqrt(SquareOf(gradients));
  if (length == 0) return result;
  const Gradients direction = Normalised(gradients, length);
  const Gradients ahead = replay.RunMoved(direction, kStep).gradients;
  const Gradients behind = replay.RunMoved(direction, -kStep).gradients;

  const double beta1 = config.beta1, beta2 = config.beta2;
  const std::vector<NamedBytes> saved = trainer.optimizer().Save();
  StateReader state(saved);
  for (size_t i = 0; i < gradients.size(); ++i) {
    std::vector<float> v(gradients[i].values.size());
    state.Read<float>(gradients[i].name + "/v", v);
    std::array<double, 3> count{};  // steps before this one, and the powers of beta1 and beta2
    state.Read<double>(gradients[i].name + "/steps", count);
    const double correction1 = 1 - beta1 * count[1], correction2 = 1 - beta2 * count[2];
    double sum = 0;
    for (size_t j = 0; j < v.size(); ++j) {
      const double g = gradients[i].values[j];
      const double square = beta2 * static_cast<double>(v[j]) + (1 - beta2) * g * g;
      const double hessian = (ahead[i].values[j] - behind[i].values[j]) / (2 * kStep);
      sum += direction[i].values[j] * hessian / (std::sqrt(square / correction2) + config.epsilon);
    }
    result.curvature += (1 - beta1) / ((1 + beta1) * correction1) * sum;
  }
  return result;
}

}  // namespace numsim
