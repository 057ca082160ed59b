// The experiment `fp4-errors`: what 4-bit grids, scales and Hadamard transforms do to a tensor, decided by
// exhaustion or in closed form where that is possible. study.toml has its options, tables and claims.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study_file.h"

namespace numsim::experiments {

Experiment Fp4Errors();

// The parts below are shared between this experiment's files.
namespace fp4_errors {

// The numbers of a 4-bit grid from 0 up, the last one for the largest magnitude of a block.
struct Grid {
  std::string name;
  std::vector<double> values;

  double Largest() const { return values.back(); }
  // Returns the number that y rounds to: nearest, ties to the even code. Numbers beyond the largest
  // become it.
  double Round(double y) const;
};
// Returns e2m1 (0 to 6), e2m1-to-4, its part up to 4 in which four over six puts some blocks, or e1m2, the
// uniform grid (0 to 3.5, that of NVINT4 and INT4 from -7 to 7).
const Grid& GridOf(std::string_view name);

// The squared error of a block, and the sum of error times element, over the sum of squares.
struct BlockError {
  double error = 0, shrinkage = 0;
};

// The expected errors of blocks of independent elements with one density, whose largest magnitude becomes
// the largest number of the grid exactly.
struct ExpectedErrors {
  double mass = 0;  // of the density that was integrated: 1, except for the rest
  double nearest = 0, stochastic = 0, shrinkage = 0;
};
// Integrates them for blocks of 16 elements of the source normal, laplace or uniform, of variance 1. The
// numbers are those of the integrals to 1e-9.
ExpectedErrors Expected(const Grid& grid, std::string_view source);

// Returns the mean error over all 2^15 signs of fifteen elements +-1 beside one element `outlier`, as it
// is or after the Hadamard transform of 16 elements, in scales that are not rounded. The sums are exact.
BlockError OutlierError(const Grid& grid, int outlier, bool transformed);

// The mean of MS-EDEN for a vector of 128 elements of which only the first two, a > b > 0, are not zero.
struct SparseEstimate {
  double a = 0, b = 0;  // the mean of its estimates of both
};
// Returns the mean over signs and random bits in exact arithmetic. All signs give the same codes except for
// their order, and the stochastic scale has its own mean.
SparseEstimate MsEdenOfTwo(int a, int b);

// Functions that study.toml names.
std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
// Rows of the trials that draw nothing.
std::vector<Row> GridRows();
std::vector<Row> BlockRows();
std::vector<Row> OutlierRows(const Settings& settings);
std::vector<Row> SparseRows();
std::vector<Row> ScaleRows();
// Rows of one source and seed.
std::vector<Row> DrawRows(const Settings& settings, const std::string& source, uint64_t seed);
study::Named<std::function<Evidence(const study::Results&)>> ExactEvidence();

}  // namespace fp4_errors
}  // namespace numsim::experiments
