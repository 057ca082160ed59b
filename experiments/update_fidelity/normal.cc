// Probabilities of the standard normal distribution.
#include <array>
#include <cmath>

#include "experiments/update_fidelity/cliff.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::update_fidelity {
namespace {

double Density(double x) {
  constexpr double kScale = 0.39894228040143267794;  // 1 / sqrt(2 pi)
  return std::abs(x) > 37 ? 0 : kScale * Exp(-0.5 * x * x);
}

}  // namespace

double NormalTail(double z) {
  if (z > 37) return 0;
  if (z < 2) {
    double term = z, sum = z;
    for (int k = 1; term > 1e-18 * sum; ++k) sum += term *= z * z / (2 * k + 1);
    return 0.5 - Density(z) * sum;
  }
  double fraction = z;  // Laplace's continued fraction, evaluated from its end
  for (int k = 80; k >= 1; --k) fraction = z + k / fraction;
  return Density(z) / fraction;
}

// Narrow intervals use Gauss-Legendre quadrature with eight points.
double NormalInterval(double low, double high) {
  if (!(low < high)) return 0;
  if (high - low > 0.5) return NormalTail(low) - (std::isinf(high) ? 0 : NormalTail(high));
  constexpr std::array<double, 4> kNodes = {0.18343464249564980494,
                                            0.52553240991632898582,
                                            0.79666647741362673959,
                                            0.96028985649753623168};
  constexpr std::array<double, 4> kWeights = {0.36268378337836198297,
                                              0.31370664587788728734,
                                              0.22238103445337447054,
                                              0.10122853629037625915};
  const double centre = (low + high) / 2, half = (high - low) / 2;
  double sum = 0;
  for (size_t i = 0; i < kNodes.size(); ++i) {
    sum += kWeights[i] * (Density(centre - half * kNodes[i]) + Density(centre + half * kNodes[i]));
  }
  return half * sum;
}

}  // namespace numsim::experiments::update_fidelity
