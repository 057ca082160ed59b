// Gradients of the layer that is not quantised, by finite differences in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/linear/linear_problem.h"

namespace numsim {
namespace {

constexpr LinearShape kShape{9, 7, 5};
constexpr double kUnit = 0x1p-24;  // relative error of one float32 rounding

// L = sum of Y^2 / 2 + C Y with C(i, j) = (i - j) / 4, Y = X W^T in float64. dL/dY = Y + C.
double Offset(size_t i, size_t j) {
  return 0.25 * (static_cast<double>(i) - static_cast<double>(j));
}

double Loss(const std::vector<double>& x, const std::vector<double>& w) {
  double loss = 0;
  for (size_t i = 0; i < kShape.tokens; ++i) {
    for (size_t j = 0; j < kShape.out; ++j) {
      double y = 0;
      for (size_t k = 0; k < kShape.in; ++k) y += x[i * kShape.in + k] * w[j * kShape.in + k];
      loss += y * y / 2 + Offset(i, j) * y;
    }
  }
  return loss;
}

// dL/d moved[i], where `moved` is x or w. L is quadratic in each single variable, so a central
// difference has no truncation error at any step, and with a step of 1/4 cancellation costs no more
// than float64's error of L, about 1e-11.
double Difference(const std::vector<double>& x,
                  const std::vector<double>& w,
                  std::vector<double>& moved,
                  size_t i) {
  const double step = 0.25, at = moved[i];
  moved[i] = at + step;
  const double above = Loss(x, w);
  moved[i] = at - step;
  const double below = Loss(x, w);
  moved[i] = at;
  return (above - below) / (2 * step);
}

// Sums of |x| |w| + |C|: what the error of an element of Y, and of G, is measured against.
naive::Matrix Magnitudes(const LinearProblem& p) {
  naive::Matrix sums{kShape.tokens, kShape.out, {}};
  for (size_t i = 0; i < kShape.tokens; ++i) {
    for (size_t j = 0; j < kShape.out; ++j) {
      double sum = std::abs(Offset(i, j));
      for (size_t k = 0; k < kShape.in; ++k) sum += std::abs(p.x.At(i, k) * p.w.At(j, k));
      sums.data.push_back(static_cast<float>(sum));
    }
  }
  return sums;
}

// |actual - expected| of each element of a gradient, the product of `magnitudes` (inner x rows) and
// `factor` (inner x cols), is at most what float32 sums may be off: in + 2 roundings of G and one
// for each term of the gradient, of the sum of its magnitudes.
void ExpectNear(const char* name,
                const std::vector<float>& actual,
                const std::vector<double>& expected,
                const naive::Matrix& magnitudes,
                const naive::Matrix& factor) {
  const size_t inner = factor.rows, cols = factor.cols;
  for (size_t i = 0; i < actual.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < inner; ++k) {
      sum += magnitudes.At(k, i / cols) * std::abs(factor.At(k, i % cols));
    }
    const double bound = static_cast<double>(kShape.in + 2 + inner + 1) * kUnit * sum + 1e-10;
    EXPECT_NEAR(actual[i], expected[i], bound) << name << " " << i;
  }
}

TEST(LinearGradient, OfTheUnquantisedLayerIsThatOfFiniteDifferences) {
  const LinearProblem p = UnevenProblem(kShape);
  LinearOptions options;
  options.high_precision = "fp32";
  Linear layer(MakeLinearRecipe(options));
  LinearSaved saved;
  std::vector<float> y(kShape.tokens * kShape.out), g(y.size());
  layer.Forward(HostMatrix(p.x.data, kShape.X()), HostMatrix(p.w.data, kShape.W()), y, saved);
  for (size_t i = 0; i < y.size(); ++i) {
    g[i] = y[i] + static_cast<float>(Offset(i / kShape.out, i % kShape.out));
  }
  std::vector<float> dx(p.x.data.size()), dw(p.w.data.size());
  layer.Backward(g, p.w.data, saved, dx, dw);

  std::vector<double> x(p.x.data.begin(), p.x.data.end());
  std::vector<double> w(p.w.data.begin(), p.w.data.end());
  std::vector<double> by_x(dx.size()), by_w(dw.size());
  for (size_t i = 0; i < dx.size(); ++i) by_x[i] = Difference(x, w, x, i);
  for (size_t i = 0; i < dw.size(); ++i) by_w[i] = Difference(x, w, w, i);
  const naive::Matrix magnitudes = Magnitudes(p);
  ExpectNear("dX", dx, by_x, Transposed(magnitudes), p.w);
  ExpectNear("dW", dw, by_w, magnitudes, p.x);
}

}  // namespace
}  // namespace numsim
