// Numerical integration, to judge distribution functions by their densities.
#pragma once

#include <array>
#include <cmath>

namespace numsim::experiments {

// Returns the integral of f from `start` to `end`: the Gauss-Legendre rule of 16 points on each of
// `parts` equal parts. Its nodes are the roots of the Legendre polynomial, by Newton's method.
template <typename F>
long double Integral(F f, long double start, long double end, int parts) {
  constexpr int kPoints = 16;
  std::array<long double, kPoints> nodes{}, weights{};
  for (int i = 0; i < kPoints; ++i) {
    long double x = std::cos(std::acos(-1.0L) * (i + 0.75L) / (kPoints + 0.5L));
    long double slope = 0;
    for (int step = 0; step < 8; ++step) {
      long double before = 1, value = x;
      for (int n = 2; n <= kPoints; ++n) {
        const long double next = ((2 * n - 1) * x * value - (n - 1) * before) / n;
        before = value;
        value = next;
      }
      slope = kPoints * (x * value - before) / (x * x - 1);
      x -= value / slope;
    }
    nodes[i] = x;
    weights[i] = 2 / ((1 - x * x) * slope * slope);
  }
  const long double half = (end - start) / (2 * parts);
  long double sum = 0;
  for (int part = 0; part < parts; ++part) {
    const long double middle = start + half * (2 * part + 1);
    for (int i = 0; i < kPoints; ++i) sum += weights[i] * f(middle + half * nodes[i]);
  }
  return sum * half;
}

}  // namespace numsim::experiments
