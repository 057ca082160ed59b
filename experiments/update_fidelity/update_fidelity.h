// Experiment `update-fidelity`: how much of a small update survives rounding to the format of the
// parameters, by update rule and learning rate ([Seed003], Empirics, Precision). study.toml has its
// options, tables and claims.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study_file.h"
#include "numsim/formats/format_table.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments {

Experiment UpdateFidelity();

// The parts below are shared between this experiment's files and its tests.
namespace update_fidelity {

// The random numbers of the update: kSame uses those that the parameters were rounded from, as
// published; kIndependent draws new ones.
enum class Keys : uint8_t { kSame, kIndependent };
std::string_view ToString(Keys keys);
Keys ParseKeys(std::string_view text);  // same, independent; throws Error

// Returns the learning rates from --lr-low to --lr-high in ascending order, --per-decade of them
// per factor of 10. Each has four significant decimal digits and is then rounded to float32.
std::vector<float> LearningRates(const Settings& settings);
// Returns the cell of a learning rate: the shortest text that reads back to that float32.
std::string RateText(float lr);

// Returns the rules of --rules, with --rtol and --iterations set. Throws Error for a bad rule, for
// a rule that is listed twice, and for one that serves none of --formats.
std::vector<UpdateRule> Rules(const Settings& settings);

// Returns the number of rows, and of columns, of the parameter matrix.
size_t Side(const Settings& settings);

// The parameters before they are rounded, and the update; rows * cols elements each.
struct Arrays {
  std::vector<float> initial, update;
};
Arrays DrawArrays(Keys keys, uint64_t seed, size_t elements);

// Returns the quotient, or NaN if the denominator is 0.
double Ratio(double numerator, double denominator);

// Compares a step with the wanted one, where step = after - before in float64 and u is the update.
// A NaN or infinity propagates to every sum that it is part of.
struct StepMeasures {
  size_t elements = 0;
  size_t moved = 0;            // elements with step != 0, including NaN
  size_t zero_updates = 0;     // elements with u == 0, which MeanRatio leaves out
  double step_square = 0;      // sum of step^2
  double update_square = 0;    // sum of u^2
  double projection = 0;       // sum of step u
  double residual_square = 0;  // sum of (step - lr u)^2
  double ratio_sum = 0;        // sum of step / u where u != 0
  double moved_update = 0;     // sum of |u| where step != 0

  StepMeasures& operator+=(const StepMeasures& other);

  double MovedShare() const;
  // The ratios are NaN where their denominator is zero.
  double NormRatio(double lr) const;        // ||step|| / (lr ||u||)
  double ProjectionRatio(double lr) const;  // <step, u> / (lr ||u||^2)
  double MeanRatio(double lr) const;        // mean(step / u) / lr
  double RelativeError(double lr) const;    // ||step - lr u|| / (lr ||u||)
  double Cosine() const;                    // between step and u
  double MovedUpdate() const;               // mean |u| of the elements that moved / rms(u)
};

// Requires spans of equal length. Sums in float64, in blocks (SumOverBlocks).
StepMeasures MeasureStep(std::span<const float> before,
                         std::span<const float> update,
                         std::span<const float> after,
                         double lr);
StepMeasures MeasureStep(std::span<const double> before,
                         std::span<const float> update,
                         std::span<const double> after,
                         double lr);

// Returns the expectation of StepMeasures::MeanRatio over the random bits of the stochastic rule.
double ExpectedMeanRatio(const WeightUpdate& step, int random_bits);

Rows Measure(const Settings& settings, const Trial& trial);
std::vector<Row> CliffRows(const study::Results& results);
// Return two figures of each format, of rules without and with state, and that of times.
std::vector<Figure> FormatFigures(const study::Results& results);
Figure TimesFigure(const study::Results& results);
void AddClaimFunctions(study::Functions& functions);
std::string Notes(const study::Results& results);

}  // namespace update_fidelity
}  // namespace numsim::experiments
