#include "numsim/ops/shared/temperature.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/internal/row_loops.h"

namespace numsim {
namespace {

template <typename T>
T FactorOf(T exponent, const ExponentLimits& limits) {
  if (std::isnan(exponent)) return exponent;
  return static_cast<T>(Exp(std::clamp<double>(exponent, limits.low, limits.high)));
}

// Returns the sum of x * y in float64, accumulated row by row.
template <typename T>
double Dot(MatrixSpan<const T> x, MatrixSpan<const T> y) {
  thread_local std::vector<double> memory;
  if (memory.size() < x.rows) memory.resize(x.rows);
  double* const sums = memory.data();
  ForRows(x.rows, x.cols, [&](size_t i) {
    sums[i] = 0;
    for (size_t j = 0; j < x.cols; ++j) sums[i] += double{x.Row(i)[j]} * double{y.Row(i)[j]};
  });
  double total = 0;
  for (size_t i = 0; i < x.rows; ++i) total += sums[i];
  return total;
}

}  // namespace

template <typename T>
void ScaleByExponential(In<T> exponent, const ExponentLimits& limits, MatrixSpan<T> y) {
  constexpr const char* kName = "scaling by an exponential";
  CheckPlaces(kName, exponent, y);
  CheckShape(kName, exponent, 1, 1);
  ScaleBy<T>(FactorOf<T>(*exponent.data, limits), y);
}

template <typename T>
void ScaleByExponentialGradient(In<T> exponent,
                                const ExponentLimits& limits,
                                In<T> y,
                                MatrixSpan<T> exponent_gradient,
                                MatrixSpan<T> g) {
  constexpr const char* kName = "the gradient of scaling by an exponential";
  CheckPlaces(kName, exponent, y, exponent_gradient, g);
  CheckShape(kName, exponent, 1, 1);
  CheckShape(kName, exponent_gradient, 1, 1);
  CheckShape(kName, y, g.rows, g.cols);
  const T t = *exponent.data;
  double sum = Dot<T>(y, g);
  // An optimiser step goes against the gradient.
  if ((t >= limits.high && sum < 0) || (t <= limits.low && sum > 0)) sum = 0;
  *exponent_gradient.data = static_cast<T>(sum);
  ScaleBy<T>(FactorOf<T>(t, limits), g);
}

#define NUMSIM_INSTANTIATE(T)                                                       \
  template void ScaleByExponential<T>(In<T>, const ExponentLimits&, MatrixSpan<T>); \
  template void ScaleByExponentialGradient<T>(                                      \
      In<T>, const ExponentLimits&, In<T>, MatrixSpan<T>, MatrixSpan<T>);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
