// The training problems of `update-convergence`: initial weights, noisy gradients and a loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numsim/data/image_set.h"

namespace numsim::experiments::update_convergence {

// Weights are a row-major matrix. All results are pure functions of the options, the step and the
// weights. Operations are float32 in a fixed order unless stated otherwise.
class TrainingProblem {
 public:
  virtual ~TrainingProblem() = default;

  size_t Rows() const { return rows_; }
  size_t Cols() const { return cols_; }
  std::span<const float> Start() const { return start_; }

  // Draws the random part of the gradients of `step` = 0, 1, ...; all trainees share it.
  virtual void Prepare(uint64_t step) = 0;
  // Computes the gradient of the prepared step, scaled so that at the start, without noise, its
  // root mean square over the weights is 1. Requires Rows() * Cols() elements in both spans.
  virtual void Gradient(std::span<const float> weights, std::span<float> gradient) = 0;
  // Returns the loss without noise, in float64.
  virtual double Loss(std::span<const float> weights) = 0;

 protected:
  size_t rows_ = 0, cols_ = 0;
  std::vector<float> start_;
};

// A diagonal quadratic with noisy gradients [NoisyQuadratic]:
//   loss = sum lambda_i (w_i - o_i)^2 / sum lambda_i D^2    1 on average at the start
//   g_i  = fl(fl(lambda_i fl(w_i - o_i)) + fl(t_i x_i)),  t_i = noise lambda_i D
// The curvatures lambda_i fall by equal factors, by `condition` from the first to the last. The x_i
// are uniform with variance 1 and new in each step. The initial weights are normal with standard
// deviation weight_scale. The distance from them to the optimum o_i is normal with standard
// deviation
//   D = reach * learning_rate * steps,
// which is `reach` times as far as `steps` steps of the learning rate lead. So the distance to
// travel grows with the learning rate, and the size of a step relative to the weights does not
// depend on `steps`.
struct QuadraticOptions {
  size_t size = 0;  // weights, in rows of 128 if 128 divides them, otherwise in one row
  double condition = 1e4;
  double noise = 1;
  double reach = 0.5;
  double weight_scale = 0.02;
  double learning_rate = 1e-3;
  size_t steps = 1;
  uint64_t seed = 0;
};
std::unique_ptr<TrainingProblem> MakeQuadratic(const QuadraticOptions& options);

// Multinomial logistic regression. Each class has a row of weights: one weight per pixel (0 .. 1)
// and the last one for the bias. The loss is the mean cross-entropy of all images, in nats; a
// gradient is that of `batch` images drawn with replacement. Matmuls use the accumulation mode
// fp32; probabilities are computed in float64 and rounded. Weights start normal with standard
// deviation weight_scale, biases at zero. Throws Error if nothing can be learned because the
// gradient over all images is zero.
struct LogisticOptions {
  size_t batch = 64;
  double weight_scale = 0.02;
  uint64_t seed = 0;
};
std::unique_ptr<TrainingProblem> MakeLogistic(const ImageSet& images,
                                              const LogisticOptions& options);

// Random streams of a seed. Streams with one stream per step count up from the value given here.
enum Stream : uint64_t {
  kStreamStart = 0,
  kStreamOptimum = 1,
  kStreamImages = 2,
  kStreamNoise = uint64_t{1} << 40,
  kStreamBatch = uint64_t{2} << 40,
  kStreamRule = uint64_t{3} << 40,
};

}  // namespace numsim::experiments::update_convergence
