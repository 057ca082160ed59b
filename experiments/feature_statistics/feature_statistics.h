// The experiment `feature-statistics`: magnitudes of features and gradients through training, with
// and without layer-scale (Figure 11, Appendix C.2 and Section 2.3 of [SwitchBack]).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "experiments/shared/training.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment FeatureStatistics();

namespace feature_statistics {

inline constexpr std::string_view kFeaturesTable = "features";
inline constexpr std::string_view kMaximaTable = "maxima";
inline constexpr std::string_view kFinalTable = "final";
inline constexpr std::string_view kSmoothnessTable = "smoothness";
inline constexpr std::string_view kGrowthTable = "growth";
inline constexpr std::string_view kDepthTable = "depth";

// A training: a model's size, and its layer-scale as a text, "none" or the initial gain.
struct Training {
  ModelSize size;
  std::string layer_scale;

  std::string Text() const;
};
inline constexpr std::string_view kNoLayerScale = "none";
inline constexpr std::string_view kZeroLayerScale = "0";

// Every training of the settings once. Throws Error naming the option.
std::vector<Training> TrainingsOf(const Settings& settings);
// `seed` is that of weights and batches. Throws Error naming the option.
TrainConfig ConfigOf(const Settings& settings, const Training& training, uint64_t seed);
// Lengths of histories, 1 among them, ascending. Throws Error naming the option.
std::vector<size_t> HistoriesOf(const Settings& settings);

// A tensor of a block that is measured: where telemetry has it.
struct BlockTensor {
  std::string_view name;
  std::string_view gelu, swiglu;  // point or parameter, behind the name of the block
  std::string_view role;          // as in telemetry's table `tensors`
  bool operand;                   // of a product of the MLP: X, W or G
};
std::span<const BlockTensor> BlockTensors();
inline constexpr std::string_view kOutput = "output";
inline constexpr std::string_view kWeightGradient = "mlp-first-weight-gradient";

// What stands for the maximum of a step under delayed scaling.
enum class Forecast : uint8_t {
  kMax,   // the largest of the maxima before
  kMean,  // their mean, a moving average
};
inline constexpr Forecast kForecasts[] = {Forecast::kMax, Forecast::kMean};
// "max", "mean".
std::string_view ToString(Forecast forecast);

// A tensor whose maximum is above what was foretold by more than this factor loses more by
// saturation than by rounding to the three mantissa bits of E4M3: 1 - 1/f = 2^-4.
inline constexpr double kClips = 16.0 / 15;

// How well earlier maxima foretell those of the steps.
struct ForecastQuality {
  size_t compared = 0;        // steps
  size_t overruns = 0;        // maximum above what was foretold
  size_t clipped = 0;         // above kClips times that
  size_t within_2 = 0;        // less than a factor 2 off, to either side
  double largest_excess = 0;  // of maximum / foretold
  // Of |log2(maximum / foretold)|; NaN when nothing was compared.
  double change_median = 0, change_95 = 0;
};
// Of step t from the up to `history` maxima before it; steps below `first` are not judged. Steps
// with a maximum of 0 or one foretold of 0 are not compared: such a history gives no scale. Ends at
// the first maximum that is not finite. Requires history >= 1.
ForecastQuality JudgeForecast(std::span<const double> maxima,
                              Forecast forecast,
                              size_t history,
                              size_t first);

std::vector<TableSpec> TableSpecs();
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// Steps that a row of `maxima` is about.
inline constexpr std::string_view kAllSteps = "all";
inline constexpr std::string_view kAfterWarmup = "after-warmup";

}  // namespace feature_statistics
}  // namespace numsim::experiments
