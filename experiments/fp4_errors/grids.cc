// Grids of 4 bits, and the errors of blocks of independent elements as integrals.
#include <algorithm>
#include <cmath>

#include "experiments/fp4_errors/fp4_errors.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::fp4_errors {
namespace {

constexpr int kBlock = 16;

std::vector<double> MagnitudesOf(const char* format, double largest) {
  std::vector<double> values;
  for (const float value : DecodeTable(ParseFormat(format).spec)) {
    const double magnitude = std::fabs(static_cast<double>(value));
    if (magnitude <= largest && std::ranges::count(values, magnitude) == 0) {
      values.push_back(magnitude);
    }
  }
  std::ranges::sort(values);
  return values;
}

// Nodes and weights of Gauss and Legendre on [-1, 1] with eight points, for the positive half.
constexpr double kNodes[] = {
    0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363};
constexpr double kWeights[] = {
    0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};

// Calls use(x, weight) for the nodes of an integral from low to high.
template <typename Use>
void ForNodes(double low, double high, const Use& use) {
  const double middle = (low + high) / 2, half = (high - low) / 2;
  for (int i = 3; i >= 0; --i) use(middle - half * kNodes[i], half * kWeights[i]);
  for (int i = 0; i < 4; ++i) use(middle + half * kNodes[i], half * kWeights[i]);
}

// A symmetric density of variance 1, its value at x >= 0, and a number beyond which it is negligible.
struct Source {
  std::string_view name;
  double (*density)(double x);
  double end;
};
constexpr double kRoot2 = 1.4142135623730951, kRoot3 = 1.7320508075688772;
constexpr double kRoot2Pi = 2.5066282746310002;
constexpr Source kSources[] = {{"normal", [](double x) { return Exp(-x * x / 2) / kRoot2Pi; }, 9},
                               {"laplace", [](double x) { return Exp(-kRoot2 * x) / kRoot2; }, 24},
                               {"uniform", [](double) { return 1 / (2 * kRoot3); }, kRoot3}};

// Integrals over the magnitudes of an element below the largest one of its block.
struct Below {
  double mass = 0, squares = 0, nearest = 0, stochastic = 0, shrinkage = 0;
};

Below BelowLargest(const Grid& grid, const Source& source, double largest) {
  const double scale = largest / grid.Largest();
  Below sums;
  for (size_t i = 0; i + 1 < grid.values.size(); ++i) {
    const double low = grid.values[i] * scale, high = grid.values[i + 1] * scale;
    const double middle = (low + high) / 2;
    for (const bool up : {false, true}) {
      const double rounded = up ? high : low;
      ForNodes(up ? middle : low, up ? high : middle, [&](double x, double weight) {
        const double mass = weight * source.density(x), error = rounded - x;
        sums.mass += mass;
        sums.squares += mass * x * x;
        sums.nearest += mass * error * error;
        sums.stochastic += mass * (x - low) * (high - x);
        sums.shrinkage += mass * error * x;
      });
    }
  }
  return sums;
}

}  // namespace

double Grid::Round(double y) const {
  const double magnitude = std::fabs(y);
  const auto above = std::ranges::lower_bound(values, magnitude);
  if (above == values.end()) return std::copysign(Largest(), y);
  if (above == values.begin()) return std::copysign(values.front(), y);
  const double high = *above, low = *(above - 1), middle = (low + high) / 2;
  const bool even = (above - values.begin()) % 2 == 0;  // of the code of `high`
  const bool up = magnitude > middle || (magnitude == middle && even);
  return std::copysign(up ? high : low, y);
}

const Grid& GridOf(std::string_view name) {
  static const std::vector<Grid> grids = {{"e2m1", MagnitudesOf("e2m1fn", 6)},
                                          {"e2m1-to-4", MagnitudesOf("e2m1fn", 4)},
                                          {"e1m2", MagnitudesOf("e1m2:inf=none,nan=none", 3.5)}};
  const auto found = std::ranges::find(grids, name, &Grid::name);
  NUMSIM_CHECK(found != grids.end(), "no grid {}", name);
  return *found;
}

// The largest of n magnitudes has the density n 2 f(A) F(A)^(n-1), with F the share of magnitudes below A;
// the others are independent below it.
ExpectedErrors Expected(const Grid& grid, std::string_view source_name) {
  const auto source = std::ranges::find(kSources, source_name, &Source::name);
  NUMSIM_CHECK(source != std::end(kSources), "no source {}", source_name);
  constexpr int kPieces = 300;
  ExpectedErrors sums;
  double squares = 0;
  for (int piece = 0; piece < kPieces; ++piece) {
    ForNodes(source->end * piece / kPieces,
             source->end * (piece + 1) / kPieces,
             [&](double largest, double weight) {
               const Below below = BelowLargest(grid, *source, largest);
               double mass = weight * kBlock * 2 * source->density(largest);
               for (int i = 1; i < kBlock; ++i) mass *= 2 * below.mass;
               const double others = mass * (kBlock - 1) / below.mass;
               sums.mass += mass;
               squares += others * below.squares + mass * largest * largest;
               sums.nearest += others * below.nearest;
               sums.stochastic += others * below.stochastic;
               sums.shrinkage += others * below.shrinkage;
             });
  }
  sums.nearest /= squares;
  sums.stochastic /= squares;
  sums.shrinkage /= squares;
  return sums;
}

std::vector<Row> GridRows() {
  std::vector<Row> rows;
  for (const char* const name : {"e2m1", "e1m2"}) {
    const std::vector<double>& values = GridOf(name).values;
    for (size_t i = 1; i + 1 < values.size(); ++i) {
      const double low = (values[i - 1] + values[i]) / 2, high = (values[i] + values[i + 1]) / 2;
      rows.push_back({name, values[i], low, high, (low + high) / 2 - values[i]});
    }
  }
  return rows;
}

std::vector<Row> BlockRows() {
  std::vector<Row> rows;
  for (const char* const source : {"normal", "laplace", "uniform"}) {
    for (const char* const grid : {"e2m1", "e2m1-to-4", "e1m2"}) {
      const ExpectedErrors errors = Expected(GridOf(grid), source);
      rows.push_back(
          {source, grid, errors.nearest, errors.stochastic, errors.shrinkage, errors.mass});
    }
  }
  return rows;
}

}  // namespace numsim::experiments::fp4_errors
