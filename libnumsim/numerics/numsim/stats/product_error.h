// The error of a computed matrix y against its reference r.
#pragma once

#include <cstddef>
#include <span>

namespace numsim {

// All means are over the elements and in float64.
struct ProductError {
  double error_variance = 0;   // of y - r, about its mean
  double signal_variance = 0;  // of r, about its mean
  double bias = 0;             // mean of y - r
  double relative_error = 0;   // ||y - r|| / ||r|| in the Frobenius norm; nan if r = 0
  double row_error = 0;        // median of the rows' relative errors, without rows with r = 0
  double column_error = 0;     // median of the columns' relative errors
  double gain = 0;             // <y, r> / <r, r>: 1 if the error is orthogonal to r
  double sqnr_db = 0;          // 10 log10(||r||^2 / ||y - r||^2); inf without error
  double cosine = 0;           // <y, r> / (||y|| ||r||)
};

// Compares y with the reference r, both row-major with `cols` columns. The sums run over fixed
// bands of rows, so the bits do not depend on the thread count. A non-finite y makes the results
// that it enters nan or inf. Throws Error unless the sizes are equal and a multiple of cols >= 1. T
// is float or double.
template <typename T>
ProductError CompareProduct(std::span<const T> r, std::span<const float> y, size_t cols);

}  // namespace numsim
