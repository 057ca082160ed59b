// The distribution of a tensor's elements.
#pragma once

#include <cstddef>
#include <span>

namespace numsim {

struct TensorSpread {
  size_t nonfinite = 0;  // elements that are NaN or infinite; they enter nothing below
  double absmax = 0;     // largest magnitude; 0 without finite elements
  // E(x - mean)^4 / var^2, both over all finite elements: 3 for a normal distribution; NaN if they are
  // all equal or there are none.
  double kurtosis = 0;
};

// Sums are in float64 over fixed blocks, so the bits do not depend on the thread count.
TensorSpread MeasureSpread(std::span<const float> values);

}  // namespace numsim
