#include "tests/support/optimizer_problem.h"

#include <algorithm>

#include "numsim/random/distributions.h"

namespace optimizer_problem {

Problem::Problem(const numsim::OptimizerConfig& config,
                 const std::vector<TensorShape>& shapes,
                 const numsim::LossScalerConfig& scaler,
                 uint64_t seed) {
  for (const TensorShape& shape : shapes) {
    list_.Add(shape.name, shape.role, shape.rows, shape.cols, {0, 0.1f});
  }
  optimizer_ = std::make_unique<numsim::Optimizer>(config, scaler, list_, seed);
}

Floats Problem::WeightValues(size_t tensor) {
  const std::span<const float> weights = Weights(tensor);
  return {weights.begin(), weights.end()};
}

void Problem::SetWeights(const Floats& values, size_t tensor) {
  std::copy(values.begin(), values.end(), Weights(tensor).begin());
}

void Problem::SetGradient(const Floats& values, size_t tensor) {
  std::copy(values.begin(), values.end(), Gradient(tensor).begin());
}

void Problem::DrawGradients(uint64_t step, float scale) {
  for (size_t i = 0; i < size(); ++i) {
    numsim::FillNormal({91, step * 100 + i}, 0, Gradient(i));
    for (float& g : Gradient(i)) g *= scale;
  }
}

const numsim::OptimizerStep& Problem::DrawnStep(double learning_rate, uint64_t step, float scale) {
  DrawGradients(step, scale);
  return optimizer_->Step(learning_rate, step);
}

std::vector<TensorShape> OneMatrix(size_t n) {
  return {{"w", numsim::ParameterRole::kMatrix, 1, n}};
}

}  // namespace optimizer_problem
