// How far a quantised array is from its original.
#pragma once

#include <cstddef>
#include <span>

namespace numsim {

// Sums over pairs (x, y): x original, y reconstructed. Elements whose x is NaN or infinite are
// counted and otherwise left out, and so are those whose finite x became infinite or NaN, which
// count as overflows. All sums in float64.
struct ErrorMeasures {
  size_t elements = 0;       // pairs seen
  size_t nonfinite = 0;      // x is NaN or infinite
  size_t underflow = 0;      // x != 0 became y == 0
  size_t overflow = 0;       // |x| >= limit, or y not finite
  size_t measured = 0;       // pairs in the sums below
  double signal_square = 0;  // sum of x^2
  double error_square = 0;   // sum of (y - x)^2
  double error_sum = 0;      // sum of y - x
  double max_error = 0;      // largest |y - x|
  double max_signal = 0;     // largest |x|

  // Signal to quantisation noise, 10 log10(signal_square / error_square) in dB; infinite for a
  // reconstruction without error, NaN for an empty or all-zero signal.
  double SqnrDb() const;
  // sqrt(error_square / signal_square), NaN for an all-zero signal.
  double RelativeError() const;
  double MeanError() const;
  // Shares of the finite elements, 0..1; 0 when there are none.
  double UnderflowShare() const;
  double OverflowShare() const;

  void Merge(const ErrorMeasures& other);
};

// Measures equally long x and y. `limit`: |x| at or above it overflows the format (pass infinity
// for none). The sum runs over fixed blocks, so the bits do not depend on the thread count.
ErrorMeasures MeasureError(std::span<const float> x, std::span<const float> y, double limit);

}  // namespace numsim
