// Error measures of a quantised array of float64 numbers, of any magnitude.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace numsim {

// The fields and functions mean what those of ErrorMeasures (error_measures.h) mean. Squares of
// float64 numbers leave the range of float64, so sums are kept in units of powers of two.
struct Float64ErrorMeasures {
  size_t elements = 0, nonfinite = 0, underflow = 0, overflow = 0, measured = 0;
  double max_error = 0, max_signal = 0;
  int signal_exponent = 0;  // signal_square is in units of 4^signal_exponent
  int error_exponent = 0;   // error_square in units of 4^error_exponent, error_sum of 2^it
  double signal_square = 0, error_square = 0, error_sum = 0;

  double SqnrDb() const;
  double RelativeError() const;
  double MeanError() const;
  double UnderflowShare() const;
  double OverflowShare() const;

  void Merge(const Float64ErrorMeasures& other);
};

// Measures the error of y against x. Element i overflows if |x[i]| >= limits[limit_of(i)], or if y[i]
// is not finite. Sums run in order. Throws Error unless the sizes are equal.
Float64ErrorMeasures MeasureError(std::span<const double> x,
                                  std::span<const double> y,
                                  std::span<const double> limits,
                                  const std::function<size_t(size_t)>& limit_of);

}  // namespace numsim
