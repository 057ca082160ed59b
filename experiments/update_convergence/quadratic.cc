#include <cmath>

#include "experiments/update_convergence/problem.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments::update_convergence {
namespace {

constexpr size_t kRowLength = 128;

class Quadratic final : public TrainingProblem {
 public:
  explicit Quadratic(const QuadraticOptions& options)
      : seed_(options.seed),
        optimum_(options.size),
        curvature_(options.size),
        deviation_(options.size),
        draws_(options.size) {
    NUMSIM_CHECK(options.size >= 1, "no weights");
    cols_ = options.size % kRowLength == 0 ? kRowLength : options.size;
    rows_ = options.size / cols_;
    const double distance =
        options.reach * options.learning_rate * static_cast<double>(options.steps);
    DrawStart(options, distance);
    SetCurvature(options, distance);
  }

  void Prepare(uint64_t step) override {
    Fill(Distribution::kUniform, {seed_, kStreamNoise + step}, 0, draws_);
  }

  void Gradient(std::span<const float> weights, std::span<float> gradient) override {
    for (size_t i = 0; i < weights.size(); ++i) {
      gradient[i] = curvature_[i] * (weights[i] - optimum_[i]) + deviation_[i] * draws_[i];
    }
  }

  double Loss(std::span<const float> weights) override {
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double d = static_cast<double>(weights[i]) - static_cast<double>(optimum_[i]);
      sum += static_cast<double>(curvature_[i]) * d * d;
    }
    return sum / start_loss_;
  }

 private:
  void DrawStart(const QuadraticOptions& options, double distance) {
    start_.resize(options.size);
    FillNormal({seed_, kStreamStart}, 0, start_);
    FillNormal({seed_, kStreamOptimum}, 0, optimum_);
    for (size_t i = 0; i < options.size; ++i) {
      const double w = options.weight_scale * static_cast<double>(start_[i]);
      start_[i] = static_cast<float>(w);
      optimum_[i] = static_cast<float>(w + distance * static_cast<double>(optimum_[i]));
    }
  }

  // Computes relative curvatures first, then scales them so that the mean square of lambda D is 1.
  void SetCurvature(const QuadraticOptions& options, double distance) {
    const size_t n = options.size;
    const double step = n > 1 ? Log(options.condition) / static_cast<double>(n - 1) : 0;
    std::vector<double> relative(n);
    double square = 0, sum = 0;
    for (size_t i = 0; i < n; ++i) {
      relative[i] = Exp(-step * static_cast<double>(i));
      square += relative[i] * relative[i];
    }
    const double largest = std::sqrt(static_cast<double>(n) / square) / distance;
    for (size_t i = 0; i < n; ++i) {
      curvature_[i] = static_cast<float>(largest * relative[i]);
      deviation_[i] = static_cast<float>(options.noise * largest * relative[i] * distance);
      sum += static_cast<double>(curvature_[i]);
    }
    start_loss_ = sum * distance * distance;
  }

  uint64_t seed_;
  std::vector<float> optimum_, curvature_, deviation_, draws_;
  double start_loss_ = 1;
};

}  // namespace

std::unique_ptr<TrainingProblem> MakeQuadratic(const QuadraticOptions& options) {
  return std::make_unique<Quadratic>(options);
}

}  // namespace numsim::experiments::update_convergence
