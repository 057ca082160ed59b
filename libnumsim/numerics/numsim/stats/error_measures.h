// Error measures of a quantised array against its original.
#pragma once

#include <cstddef>
#include <span>

namespace numsim {

// Sums over pairs (x, y) of an original x and a reconstructed y. Pairs with a NaN or infinite x are
// counted but enter no sum. The same holds for pairs whose finite x became an infinite or NaN y;
// these count as overflows. All sums are in float64.
struct ErrorMeasures {
  size_t elements = 0;       // number of pairs
  size_t nonfinite = 0;      // x is NaN or infinite
  size_t underflow = 0;      // x != 0 became y == 0
  size_t overflow = 0;       // x is finite, and |x| >= limit or y is not finite
  size_t measured = 0;       // pairs in the sums below
  double signal_square = 0;  // sum of x^2
  double error_square = 0;   // sum of (y - x)^2
  double error_sum = 0;      // sum of y - x
  double max_error = 0;      // largest |y - x|
  double max_signal = 0;     // largest |x|

  // Signal-to-quantisation-noise ratio 10 log10(signal_square / error_square) in dB. Infinite for a
  // reconstruction without error; NaN for an empty or all-zero signal.
  double SqnrDb() const;
  // sqrt(error_square / signal_square). For an all-zero signal it is NaN without error, otherwise
  // infinite.
  double RelativeError() const;
  // Mean of y - x over the measured pairs; 0 if there are none.
  double MeanError() const;
  // Fractions of the pairs with finite x, 0..1; 0 if there are none.
  double UnderflowShare() const;
  double OverflowShare() const;

  // Adds the pairs of `other`.
  void Merge(const ErrorMeasures& other);
};

// Measures the error of y against x. An |x| at or above `limit` counts as an overflow of the format
// (pass infinity for no limit). The sums run over fixed blocks, so the bits do not depend on the
// thread count. Throws Error unless the sizes are equal.
ErrorMeasures MeasureError(std::span<const float> x, std::span<const float> y, double limit);

}  // namespace numsim
