// Experiment `update-fidelity`: what is left of a small update after rounding to the format of the
// parameters, by update rule and learning rate ([Seed003], Empirics, Precision).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/experiment.h"

namespace numsim::experiments {

Experiment UpdateFidelity();

// The parts below are shared between this experiment's files and its tests.
namespace update_fidelity {

inline constexpr std::string_view kTable = "fidelity";

// Whether the update is the very draw that the parameters were rounded from, as published, or an
// independent one.
enum class Keys : uint8_t { kSame, kIndependent };
std::string_view Name(Keys keys);
Keys ParseKeys(std::string_view text);  // same, independent; throws Error

// The learning rates from --lr-low to --lr-high, ascending, --per-decade in a factor of 10, each
// rounded to four significant digits: the text of the CSV is the number that was used.
std::vector<double> LearningRates(const Settings& settings);

// How a step compares with the wanted one. step = new_params - params, exact in float64; u the
// update. A NaN or infinity goes through to every sum it is part of.
struct StepMeasures {
  size_t elements = 0;
  size_t moved = 0;            // step != 0, NaN included
  size_t zero_updates = 0;     // u == 0: left out of mean_ratio
  double step_square = 0;      // sum of step^2
  double update_square = 0;    // sum of u^2
  double projection = 0;       // sum of step u
  double residual_square = 0;  // sum of (step - lr u)^2
  double ratio_sum = 0;        // sum of step / u where u != 0

  double MovedShare() const;
  // The ratios are NaN where their denominator is zero.
  double NormRatio(double lr) const;      // ||step|| / (lr ||u||)
  double MeanRatio(double lr) const;      // mean(step / u) / lr
  double RelativeError(double lr) const;  // ||step - lr u|| / (lr ||u||)
  double Cosine() const;                  // between step and u
};

// Requires equal lengths. Sums in float64: elements of blocks of 4096 in order, then the blocks.
StepMeasures MeasureStep(std::span<const float> params,
                         std::span<const float> update,
                         std::span<const float> new_params,
                         double lr);

Rows Measure(const Settings& settings, const Point& point);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// One column over the learning rates: mean, least and greatest of the seeds. NaN where a seed's
// value is.
struct Curve {
  std::vector<double> lr, mean, low, high;
};

// What one curve is about.
struct CurveKey {
  std::string format, keys, method;
};
Curve CurveOf(const Table& table, const CurveKey& key, std::string_view column);

}  // namespace update_fidelity
}  // namespace numsim::experiments
