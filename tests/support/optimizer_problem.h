// Parameters and gradients for the tests of optimisers, without a model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/parameter.h"
#include "numsim/optim/optimizer.h"
#include "tests/support/same_bits.h"

namespace optimizer_problem {

using Floats = std::vector<float>;

struct TensorShape {
  std::string name;
  numsim::ParameterRole role = numsim::ParameterRole::kMatrix;
  size_t rows = 1, cols = 1;
};

// Parameters of these shapes, normal with deviation 0.1, and an optimiser of them.
class Problem {
 public:
  Problem(const numsim::OptimizerConfig& config,
          const std::vector<TensorShape>& shapes,
          const numsim::LossScalerConfig& scaler = {},
          uint64_t seed = 11);

  numsim::Optimizer& optimizer() { return *optimizer_; }
  std::span<float> Weights(size_t tensor = 0) { return list_[tensor].value.View().Span(); }
  std::span<float> Gradient(size_t tensor = 0) { return list_[tensor].gradient.View().Span(); }
  Floats WeightValues(size_t tensor = 0);
  size_t size() const { return list_.size(); }

  void SetWeights(const Floats& values, size_t tensor = 0);
  void SetGradient(const Floats& values, size_t tensor = 0);
  // Normal draws of (seed, step, tensor) times `scale`, in every tensor.
  void DrawGradients(uint64_t step, float scale = 1);
  // DrawGradients, then a step.
  const numsim::OptimizerStep& DrawnStep(double learning_rate, uint64_t step, float scale = 1);

 private:
  numsim::ParameterList<float> list_{5};
  std::unique_ptr<numsim::Optimizer> optimizer_;
};

// One matrix of 1 x n.
std::vector<TensorShape> OneMatrix(size_t n);

}  // namespace optimizer_problem
