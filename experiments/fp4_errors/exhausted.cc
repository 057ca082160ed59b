// Errors over all signs: of blocks with an outlier, and of MS-EDEN of two elements.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "experiments/fp4_errors/fp4_errors.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::fp4_errors {
namespace {

constexpr size_t kOfBlock = 16;
constexpr uint32_t kPatterns = uint32_t{1} << (kOfBlock - 1);

using IntegerBlock = std::array<int64_t, kOfBlock>;

// Returns four times the Hadamard transform, which is an integer.
IntegerBlock Transformed(IntegerBlock x) {
  for (size_t h = 1; h < kOfBlock; h *= 2) {
    for (size_t i = 0; i < kOfBlock; ++i) {
      if ((i & h) != 0) continue;
      const int64_t a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
  return x;
}

// Sums over blocks, of integers: grid numbers are halves.
struct IntegerSums {
  int64_t squares = 0, errors = 0, products = 0;
};

// Adds a block x whose largest magnitude A becomes the largest number M of the grid: x A / (2 M) rounds to
// q, so 2 M times the error is 2 q A - 2 M x, an integer.
void AddBlock(const Grid& grid, const IntegerBlock& x, IntegerSums& sums) {
  int64_t largest = 0;
  for (const int64_t value : x) largest = std::max(largest, std::abs(value));
  const double most = grid.Largest();
  const auto twice_most = static_cast<int64_t>(2 * most);
  for (const int64_t value : x) {
    const double y = static_cast<double>(value) * most / static_cast<double>(largest);
    const auto twice = static_cast<int64_t>(2 * grid.Round(y));
    const int64_t error = twice * largest - twice_most * value;
    sums.squares += twice_most * twice_most * value * value;
    sums.errors += error * error;
    sums.products += twice_most * value * error;
  }
}

}  // namespace

BlockError OutlierError(const Grid& grid, int outlier, bool transformed) {
  IntegerSums sums;
  for (uint32_t pattern = 0; pattern < kPatterns; ++pattern) {
    IntegerBlock x;
    x[0] = outlier;
    for (size_t i = 1; i < kOfBlock; ++i) x[i] = (pattern >> (i - 1) & 1) != 0 ? -1 : 1;
    AddBlock(grid, transformed ? Transformed(x) : x, sums);
  }
  const auto squares = static_cast<double>(sums.squares);
  return {static_cast<double>(sums.errors) / squares, static_cast<double>(sums.products) / squares};
}

// The transform of (a, b, 0 .. 0) has elements of the magnitudes L = a + b and l = a - b over sqrt(128), a
// half of them each, in every block. Under the scale L / V of MS-EDEN they have the codes 6 and q. The
// correction is (L^2 + l^2) / (6 L + q l) times L / V, so the transform back has
//   c (6 + q) / 2 in place of a and c (6 - q) / 2 in place of b, with c = (L^2 + l^2) / (6 L + q l).
SparseEstimate MsEdenOfTwo(int a, int b) {
  constexpr double kMost = 6 / (17.0 / 16 * 0.93);  // V
  const double sum = a + b, difference = a - b;
  const double q = GridOf("e2m1").Round(kMost * difference / sum);
  const double c = (sum * sum + difference * difference) / (6 * sum + q * difference);
  return {c * (6 + q) / 2, c * (6 - q) / 2};
}

std::vector<Row> OutlierRows(const Settings& settings) {
  std::vector<Row> rows;
  for (const int64_t outlier : settings.GetIntegers("outliers", 1, 1024)) {
    for (const char* const grid : {"e2m1", "e1m2"}) {
      for (const bool transformed : {false, true}) {
        const BlockError error = OutlierError(GridOf(grid), static_cast<int>(outlier), transformed);
        rows.push_back(
            {outlier, grid, transformed ? "hadamard" : "none", error.error, error.shrinkage});
      }
    }
  }
  return rows;
}

std::vector<Row> SparseRows() {
  std::vector<Row> rows;
  for (int a = 2; a <= 16; ++a) {
    for (int b = 1; b < a; ++b) {
      const SparseEstimate estimate = MsEdenOfTwo(a, b);
      const double da = estimate.a - a, db = estimate.b - b;
      rows.push_back({a,
                      b,
                      estimate.a,
                      estimate.b,
                      std::sqrt((da * da + db * db) / (a * a + b * b)),
                      (a * estimate.a + b * estimate.b) / (a * a + b * b)});
    }
  }
  return rows;
}

// The scale S of a block of NVFP4 has a significand of m / 8, m from 8 to 15. A block whose A / 6 is below
// the middle of m and m + 1 has the scale m: its largest element is beyond 6 and becomes 6, in each draw.
std::vector<Row> ScaleRows() {
  std::vector<Row> rows;
  for (int m = 8; m < 16; ++m) {
    rows.push_back({m, 1 / (2.0 * m + 1), Log((m + 0.5) / m) / Log(2.0)});
  }
  return rows;
}

}  // namespace numsim::experiments::fp4_errors
