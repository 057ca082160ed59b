// How a matrix product from elsewhere differs from the right one, and what the difference looks like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "numsim/gemm/gemm.h"

namespace numsim {

// A row or column of a matrix, and ||mine - expected|| / ||expected|| in it.
struct WorstVector {
  size_t index = 0;
  double error = 0;
};

// The differences between two float32 matrices of the same shape. Places are indices in row-major
// order. Norms and sums are over the elements that are finite on both sides, in float64.
struct ProductDifference {
  size_t elements = 0;
  size_t differing = 0;
  std::optional<size_t> first;  // place of the first differing element
  size_t incomparable = 0;      // differing elements of which one or both are infinite or NaN
  size_t other_sign = 0;        // finite elements of opposite signs
  // Largest distance in float32 values among differing elements that have no opposite signs.
  uint64_t ulps = 0;
  std::optional<size_t> ulps_at;
  double largest = 0;  // largest |mine - expected|
  std::optional<size_t> largest_at;
  double rms = 0;            // root mean square of expected
  double relative_norm = 0;  // ||mine - expected|| / ||expected|| (Frobenius); nan for 0 / 0
  double gain = 1;           // <mine, expected> / <expected, expected>
  // The worst vectors, at most three, the worst first, and the median over all. Vectors whose
  // expected elements are all zero are left out.
  std::vector<WorstVector> rows, columns;
  double median_row = 0, median_column = 0;
};

// Compares bit for bit, so -0 differs from +0. If `any_nan` is true, all NaNs are equal. Requires
// equal sizes, a multiple of cols >= 1.
ProductDifference CompareProducts(std::span<const float> expected,
                                  std::span<const float> mine,
                                  size_t cols,
                                  bool any_nan);

// The likenesses of a difference between two products.
enum class DifferenceKind : uint8_t {
  kNone,      // no finite elements differ
  kRounding,  // no more than sums in another order or width would give
  kScale,     // one factor on everything
  kRowScale,  // a factor per row
  kColumnScale,
  kTranspose,  // the transposed product
  kPrefix,     // the sum of only the first products
  kSuffix,     // of only the last ones
  kSegment,    // some products along the inner dimension count another number of times
  kUnknown,
};

// The likeness of a difference: its kind, its size, and a sentence.
struct Likeness {
  DifferenceKind kind = DifferenceKind::kNone;
  // Largest |mine - expected| over the sum of the |products| of its element, of the elements that
  // were examined: below about 2^-p if sums keep p bits.
  double share = 0;
  std::string text;  // one line for people
};

// Says what the difference looks like, from up to 4,096 elements of the product, spread over it.
// Fits factors to all, to rows and to columns; compares with sums that end earlier or begin later;
// and fits the difference by the partial sums of up to 32 parts of the inner dimension. A kind is
// named if it leaves less than a hundredth of the squared difference unexplained. Requires a valid
// GEMM (see Gemm()) on the host and its result.
Likeness ExplainDifference(const GemmOperand& a,
                           const GemmOperand& b,
                           std::span<const float> expected,
                           std::span<const float> mine);

}  // namespace numsim
