// What `update-convergence` trains: problems with a start, gradients with noise, and a loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numsim/data/image_set.h"

namespace numsim::experiments::update_convergence {

// Weights are a matrix, row by row. Everything is a pure function of the options, the step and the
// weights; float32 operations in one order unless said otherwise.
class TrainingProblem {
 public:
  virtual ~TrainingProblem() = default;

  size_t Rows() const { return rows_; }
  size_t Cols() const { return cols_; }
  std::span<const float> Start() const { return start_; }

  // Draws what is random about the gradients of `step` = 0, 1, ...: the same whoever asks.
  virtual void Prepare(uint64_t step) = 0;
  // The gradient of the prepared step, scaled so that at the start, without noise, its root mean
  // square over the weights is 1. Requires Rows() * Cols() weights and elements of `gradient`.
  virtual void Gradient(std::span<const float> weights, std::span<float> gradient) = 0;
  // The loss without noise, in float64.
  virtual double Loss(std::span<const float> weights) = 0;

 protected:
  size_t rows_ = 0, cols_ = 0;
  std::vector<float> start_;
};

// A diagonal quadratic with noisy gradients [NoisyQuadratic]:
//   loss = sum lambda_i (w_i - o_i)^2 / sum lambda_i D^2    1 on average at the start
//   g_i  = fl(fl(lambda_i fl(w_i - o_i)) + fl(t_i x_i)),  t_i = noise lambda_i D
// with lambda_i falling by equal factors from the first to the last, `condition` in all, x_i
// uniform of variance 1, new in each step, and w at the start normal with standard deviation
// weight_scale. The optimum o_i lies at a normal distance from it with the standard deviation
//   D = reach * learning_rate * steps,
// `reach` times as far as steps of the learning rate lead: what training has to travel grows with
// the learning rate, and what a step is compared with the weights does not depend on `steps`.
struct QuadraticOptions {
  size_t size = 0;  // in rows of 128 where that divides it, else one row
  double condition = 1e4;
  double noise = 1;
  double reach = 0.5;
  double weight_scale = 0.02;
  double learning_rate = 1e-3;
  size_t steps = 1;
  uint64_t seed = 0;
};
std::unique_ptr<TrainingProblem> MakeQuadratic(const QuadraticOptions& options);

// Multinomial logistic regression: a row of weights for each class, one for each pixel (0 .. 1) and
// the last one for the bias. The loss is the mean cross-entropy of all images, in nats; a gradient
// is that of `batch` images drawn with replacement. Products are Gemm's under rule fp32;
// probabilities are float64, rounded. Weights start normal with standard deviation weight_scale,
// biases at zero. Throws Error where nothing can be learned: all gradients are zero.
struct LogisticOptions {
  size_t batch = 64;
  double weight_scale = 0.02;
  uint64_t seed = 0;
};
std::unique_ptr<TrainingProblem> MakeLogistic(const ImageSet& images,
                                              const LogisticOptions& options);

// Streams of a seed; those that change with the step count up from the value here.
enum Stream : uint64_t {
  kStreamStart = 0,
  kStreamOptimum = 1,
  kStreamImages = 2,
  kStreamNoise = uint64_t{1} << 40,
  kStreamBatch = uint64_t{2} << 40,
  kStreamRule = uint64_t{3} << 40,
};

}  // namespace numsim::experiments::update_convergence
