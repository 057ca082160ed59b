// Comparison of a GEMM with a result from elsewhere, for `numsim gemm --compare`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "numsim/io/array.h"

namespace numsim::apps {

// The differences between two float32 matrices of the same shape. Places are indices in row-major
// order.
struct MatrixDifference {
  size_t elements = 0;
  size_t differing = 0;
  std::optional<size_t> first;  // place of the first differing element
  // Largest distance in float32 ulps: the number of float32 values from the one (inclusive) to the
  // other (exclusive); 0 for -0 and +0. Only finite elements count.
  uint64_t ulps = 0;
  std::optional<size_t> ulps_at;  // none if no finite elements differ
  // Largest |mine - expected| / |expected|, infinite if expected is 0. Only finite elements count.
  double relative = 0;
  std::optional<size_t> relative_at;
  // Differing elements of which at least one is infinite or NaN.
  size_t incomparable = 0;
};

// Compares bit for bit, so -0 differs from +0. If `any_nan` is true, all NaNs are equal. Requires
// float32 arrays of the same shape.
MatrixDifference Compare(const Array& mine, const Array& expected, bool any_nan);

// Reads the matrix to compare with, as float32. Throws Error that names `file` unless it is a .npy
// file of the given shape that holds float32, or uint32 for the bits of float32.
Array ReadMine(const std::string& file, const std::vector<size_t>& shape);

// Returns some lines: how many elements are equal, the first that differs, the largest differences.
std::string DifferenceText(const MatrixDifference& difference,
                           const Array& mine,
                           const Array& expected);

}  // namespace numsim::apps
