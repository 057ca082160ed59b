// Gradients against central differences, in float64.
//
// A difference quotient (f(x + h d) - f(x - h d)) / 2h is wrong by O(h^2) and by the rounding of f
// over h. That of twice the step tells how large the first is and removes it (Richardson), so that
// about ten digits are left. Checks are of single entries, and of random directions over all
// entries at once, which see each entry.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/model.h"
#include "numsim/random/distributions.h"

namespace numsim {

struct DifferenceOptions {
  double step = 1e-3;
  // Of |gradient - difference|, relative to the largest of both, of all of the tensor's gradient,
  // and of `least`: gradients that are 0 for a reason of algebra are rounding errors on both sides.
  double tolerance = 1e-6;
  double least = 1e-3;
  size_t entries = 6;     // single entries of a tensor that are checked, at most
  size_t directions = 2;  // random directions of a tensor
  uint64_t seed = 1;
};

// The derivative at 0 of f along a line.
inline double Derivative(const std::function<double(double)>& f, double step) {
  const double narrow = (f(step) - f(-step)) / (2 * step);
  const double wide = (f(2 * step) - f(-2 * step)) / (4 * step);
  return (4 * narrow - wide) / 3;
}

// Expects `gradient` to be that of `loss`, a function of `values`, which are put back.
inline void ExpectGradient(const std::string& name,
                           std::span<double> values,
                           std::span<const double> gradient,
                           const std::function<double()>& loss,
                           const DifferenceOptions& options = {}) {
  ASSERT_EQ(values.size(), gradient.size()) << name;
  ASSERT_FALSE(values.empty()) << name;
  const std::vector<double> kept(values.begin(), values.end());
  // The gradient may live in memory that `loss` writes.
  const std::vector<double> expected(gradient.begin(), gradient.end());
  double scale = options.least;
  for (const double g : expected) {
    ASSERT_TRUE(std::isfinite(g)) << name;
    scale = std::max(scale, std::abs(g));
  }
  const auto check =
      [&](const std::vector<double>& direction, double of_gradient, const std::string& what) {
        const double difference = Derivative(
            [&](double t) {
              for (size_t i = 0; i < values.size(); ++i) values[i] = kept[i] + t * direction[i];
              return loss();
            },
            options.step);
        std::copy(kept.begin(), kept.end(), values.begin());
        const double size = std::max({std::abs(difference), std::abs(of_gradient), scale});
        EXPECT_LE(std::abs(difference - of_gradient), options.tolerance * size)
            << name << ' ' << what << ": gradient " << of_gradient << ", difference " << difference;
      };
  const size_t n = values.size();
  std::vector<double> direction(n);
  for (size_t k = 0; k < std::min(n, options.entries); ++k) {
    const uint64_t draw = RandomWord({options.seed, 1}, k);
    const size_t i = n <= options.entries ? k : static_cast<size_t>(draw % n);
    std::fill(direction.begin(), direction.end(), 0.0);
    direction[i] = 1;
    check(direction, expected[i], "entry " + std::to_string(i));
  }
  std::vector<float> draws(n);
  for (size_t k = 0; k < options.directions && n > 1; ++k) {
    FillNormal({options.seed, 2 + k}, 0, draws);
    double square = 0, along = 0;
    for (const float d : draws) square += double{d} * d;
    for (size_t i = 0; i < n; ++i) {
      direction[i] = draws[i] / std::sqrt(square);
      along += direction[i] * expected[i];
    }
    check(direction, along, "direction " + std::to_string(k));
  }
}

// Expects the gradients of all parameters to be those of `loss`, which computes it from the values
// of the parameters. The gradients have to be there already.
inline void ExpectParameterGradients(ParameterList<double>& parameters,
                                     const std::function<double()>& loss,
                                     const DifferenceOptions& options = {}) {
  std::vector<std::vector<double>> gradients;
  for (const Parameter<double>& parameter : parameters) {
    const std::span<const double> gradient = parameter.gradient.View().Span();
    gradients.emplace_back(gradient.begin(), gradient.end());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter<double>& parameter = parameters[i];
    ExpectGradient(parameter.name, parameter.value.View().Span(), gradients[i], loss, options);
  }
}

// Expects Backward of `model` to give the gradients of the mean loss over `batch`.
inline void ExpectModelGradients(Model<double>& model,
                                 const Batch& batch,
                                 const DifferenceOptions& options = {},
                                 const Pass<double>& pass = {}) {
  model.Forward(pass, batch);
  model.Backward(pass);
  ExpectParameterGradients(
      model.parameters(), [&] { return model.Forward(pass, batch).Mean(); }, options);
}

// Replaces the values of all parameters by normal draws about them, so that none is at a special
// point: gains of 1, biases of 0, weights whose branches hardly count.
template <typename T>
void Unsettle(ParameterList<T>& parameters, float deviation, uint64_t seed) {
  uint64_t stream = 0;
  std::vector<float> draws;
  for (Parameter<T>& parameter : parameters) {
    const std::span<T> values = parameter.value.View().Span();
    draws.resize(values.size());
    FillNormal({seed, stream++}, 0, draws);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<T>(static_cast<float>(values[i]) + deviation * draws[i]);
    }
  }
}

}  // namespace numsim
