// The error of a computed matrix against its reference.
#pragma once

#include <cstddef>
#include <span>

namespace numsim {

// All means are over the elements, in float64.
struct ProductError {
  double error_variance = 0;   // of y - r, about its mean
  double signal_variance = 0;  // of r, about its mean
  double bias = 0;             // mean of y - r
  double relative_error = 0;   // ||y - r|| / ||r||, Frobenius; nan for r = 0
  double row_error = 0;        // median over rows of the same; rows with r = 0 left out
  double column_error = 0;     // median over columns
  double gain = 0;             // <y, r> / <r, r>: 1 where the error is not aligned with r
  double sqnr_db = 0;          // 10 log10(||r||^2 / ||y - r||^2); inf without error
  double cosine = 0;           // <y, r> / (||y|| ||r||)
};

// Compares y with the reference r, both row-major with `cols` columns. The sums run over fixed
// bands of rows, so the bits do not depend on the thread count. A y that is not finite makes what
// it enters nan or inf. Requires equal sizes, a multiple of cols, cols >= 1. T: float, double.
template <typename T>
ProductError CompareProduct(std::span<const T> r, std::span<const float> y, size_t cols);

}  // namespace numsim
