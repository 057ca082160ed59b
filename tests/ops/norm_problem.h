// Inputs of the norms and all that their operations on the host write.
#pragma once

#include <cstddef>
#include <vector>

#include "numsim/ops/shared/norm.h"
#include "tests/ops/grid.h"

namespace numsim {

inline constexpr double kNormEpsilon = 1e-5;

// Inputs of a norm with `vectors` vectors of n elements per row.
template <typename T>
struct NormProblem {
  Grid<T> x, g, gain, bias;

  NormProblem(size_t rows, size_t vectors, size_t n)
      : x(rows, vectors * n, 1), g(rows, vectors * n, 2), gain(1, n, 3), bias(1, n, 4) {
    for (size_t r = 0; r < rows; ++r) {  // vectors of other sizes, and off center
      for (size_t c = 0; c < x.cols(); ++c) x(r, c) = x(r, c) * T(1 << r % 3) + T(r % 5);
    }
  }
  size_t vectors() const { return x.cols() / gain.cols(); }
};

// Room for what the norms of a problem write.
template <typename T>
struct NormResult {
  Grid<T> inverse, mean, y, gain_gradient, bias_gradient, dx;

  explicit NormResult(const NormProblem<T>& p)
      : inverse(p.x.rows(), p.vectors()),
        mean(inverse),
        y(p.x.rows(), p.x.cols()),
        gain_gradient(1, p.gain.cols()),
        bias_gradient(gain_gradient),
        dx(y) {}
  std::vector<Grid<T>> All() const { return {inverse, mean, y, gain_gradient, bias_gradient, dx}; }
};

// Return what the operations of the host write.
template <typename T>
NormResult<T> WithRmsNorm(const NormProblem<T>& p, double epsilon = kNormEpsilon) {
  NormResult<T> r(p);
  RmsNorm<T>(p.x.View(), p.gain.View(), epsilon, r.inverse.View(), r.y.View());
  RmsNormGradient<T>(
      p.g.View(), p.x.View(), p.gain.View(), r.inverse.View(), r.gain_gradient.View(), r.dx.View());
  return r;
}

template <typename T>
NormResult<T> WithLayerNorm(const NormProblem<T>& p, double epsilon = kNormEpsilon) {
  NormResult<T> r(p);
  LayerNorm<T>(p.x.View(),
               p.gain.View(),
               p.bias.View(),
               epsilon,
               r.mean.View(),
               r.inverse.View(),
               r.y.View());
  LayerNormGradient<T>(p.g.View(),
                       p.x.View(),
                       p.gain.View(),
                       r.mean.View(),
                       r.inverse.View(),
                       r.gain_gradient.View(),
                       r.bias_gradient.View(),
                       r.dx.View());
  return r;
}

template <typename T>
NormResult<T> WithUnitNorm(const NormProblem<T>& p) {
  NormResult<T> r(p);
  UnitNorm<T>(p.x.View(), r.inverse.View(), r.y.View());
  UnitNormGradient<T>(p.g.View(), r.y.View(), r.inverse.View(), r.dx.View());
  return r;
}

}  // namespace numsim
