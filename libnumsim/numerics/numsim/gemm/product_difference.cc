#include "numsim/gemm/product_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "numsim/base/require.h"

namespace numsim {
namespace {

constexpr size_t kWorst = 3;

// Returns how many float32 values there are from x (inclusive) to y (exclusive), which have no
// opposite signs; -0 and +0 are one value.
uint64_t Steps(float x, float y) {
  const auto magnitude = [](float f) {
    return static_cast<int64_t>(std::bit_cast<uint32_t>(f) & 0x7FFFFFFFu);
  };
  return static_cast<uint64_t>(std::abs(magnitude(x) - magnitude(y)));
}

struct Squares {
  double error = 0, signal = 0;
};

// Returns the worst vectors and sets `median`.
std::vector<WorstVector> Worst(const std::vector<Squares>& squares, double* median) {
  std::vector<WorstVector> all;
  for (size_t i = 0; i < squares.size(); ++i) {
    if (squares[i].signal == 0) continue;
    all.push_back({i, std::sqrt(squares[i].error / squares[i].signal)});
  }
  std::ranges::stable_sort(all, [](auto& x, auto& y) { return x.error > y.error; });
  *median = all.empty() ? 0 : all[all.size() / 2].error;
  if (all.size() > kWorst) all.resize(kWorst);
  return all;
}

// Adds two finite elements with different bits.
void AddFinite(size_t i, float mine, float expected, ProductDifference& difference) {
  const double error = std::abs(static_cast<double>(mine) - static_cast<double>(expected));
  if (!difference.largest_at || error > difference.largest) {
    difference.largest = error;
    difference.largest_at = i;
  }
  if ((mine < 0 && expected > 0) || (mine > 0 && expected < 0)) {
    ++difference.other_sign;
    return;
  }
  const uint64_t steps = Steps(mine, expected);
  if (difference.ulps_at && steps <= difference.ulps) return;
  difference.ulps = steps;
  difference.ulps_at = i;
}

}  // namespace

ProductDifference CompareProducts(std::span<const float> expected,
                                  std::span<const float> mine,
                                  size_t cols,
                                  bool any_nan) {
  RequireSize(mine.size(), expected.size(), "CompareProducts", "mine");
  NUMSIM_REQUIRE(cols != 0 && expected.size() % cols == 0,
                 "CompareProducts: {} elements in rows of {}",
                 expected.size(),
                 cols);
  ProductDifference d;
  d.elements = expected.size();
  std::vector<Squares> rows(expected.size() / cols), columns(cols);
  double error_square = 0, signal_square = 0, product = 0;
  size_t finite = 0;
  for (size_t i = 0; i < d.elements; ++i) {
    const float x = mine[i], y = expected[i];
    const bool comparable = std::isfinite(x) && std::isfinite(y);
    const bool same = std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) ||
                      (any_nan && std::isnan(x) && std::isnan(y));
    if (!same) {
      ++d.differing;
      if (!d.first) d.first = i;
      if (!comparable) ++d.incomparable;
    }
    if (!comparable) continue;
    if (!same) AddFinite(i, x, y, d);
    const double wide = static_cast<double>(y), error = static_cast<double>(x) - wide;
    for (Squares* const squares : {&rows[i / cols], &columns[i % cols]}) {
      squares->error += error * error;
      squares->signal += wide * wide;
    }
    ++finite;
    error_square += error * error;
    signal_square += wide * wide;
    product += static_cast<double>(x) * wide;
  }
  d.rms = finite == 0 ? 0 : std::sqrt(signal_square / static_cast<double>(finite));
  d.relative_norm = std::sqrt(error_square / signal_square);
  d.gain = signal_square == 0 ? 1 : product / signal_square;
  d.rows = Worst(rows, &d.median_row);
  d.columns = Worst(columns, &d.median_column);
  return d;
}

}  // namespace numsim
