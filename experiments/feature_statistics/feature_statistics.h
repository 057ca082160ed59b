// The experiment `feature-statistics`: magnitudes of features and gradients through training, with
// and without layer-scale (Figure 11, Appendix C.2 and Section 2.3 of [SwitchBack]).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"

namespace numsim::experiments {

study::Study FeatureStatisticsStudy();
Experiment FeatureStatistics();

namespace feature_statistics {

using study::Results;

// Choices of the axis layer_scale: others are initial gains.
inline constexpr std::string_view kNoLayerScale = "none", kZeroLayerScale = "0";

// Returns the distinct lengths of histories in ascending order, always including 1. Throws Error
// naming a bad option.
std::vector<size_t> HistoriesOf(const Settings& settings);

// A tensor of a block that is measured, and its name in telemetry.
struct BlockTensor {
  std::string_view name;
  std::string_view gelu, swiglu;  // tensor or parameter name without the name of the block
  std::string_view role;          // as in telemetry's table `tensors`
  bool operand;                   // true for an operand X, W or G of a GEMM of the MLP
};
std::span<const BlockTensor> BlockTensors();
inline constexpr std::string_view kOutput = "output";
inline constexpr std::string_view kWeightGradient = "mlp-first-weight-gradient";

// The prediction of a step's maximum under delayed scaling.
enum class Forecast : uint8_t {
  kMax,   // the largest of the previous maxima
  kMean,  // the mean of the previous maxima, a moving average
};
inline constexpr Forecast kForecasts[] = {Forecast::kMax, Forecast::kMean};
// Returns "max" or "mean".
std::string_view ToString(Forecast forecast);

// If the maximum of a tensor exceeds its forecast by more than this factor f, saturation loses more
// than rounding to the three mantissa bits of E4M3: 1 - 1/f = 2^-4.
inline constexpr double kClips = 16.0 / 15;

// How well earlier maxima predict those of the steps.
struct ForecastQuality {
  size_t compared = 0;        // number of steps compared
  size_t overruns = 0;        // steps whose maximum is above the forecast
  size_t clipped = 0;         // steps whose maximum is above kClips times the forecast
  size_t within_2 = 0;        // steps whose maximum is within a factor of 2 of the forecast
  double largest_excess = 0;  // largest maximum / forecast; NaN when nothing was compared
  // Median and 95 % quantile of |log2(maximum / forecast)|; NaN when nothing was compared.
  double change_median = 0, change_95 = 0;
};
// Judges the forecast of each step t from up to `history` maxima before it; steps below `first` are
// not judged. Steps with a maximum or a forecast of 0 are not compared, because such a history
// gives no scale. Ends at the first maximum that is not finite. Requires history >= 1.
ForecastQuality JudgeForecast(std::span<const double> maxima,
                              Forecast forecast,
                              size_t history,
                              size_t first);

// Returns the mean of the last maxima, up to `history` of them; 0 if there are none.
double MeanOfLast(std::span<const double> maxima, size_t history);
// Returns the signal over noise, in dB, of values in E4M3 under the scale at which `maximum` becomes the
// format's largest number; larger values saturate. Infinite without an error, NaN if all values are 0.
double ScaledSqnr(std::span<const float> values, double maximum);

// The longest history that stands for a moving average.
inline constexpr size_t kJudgedHistory = 16;

study::ProbeSpec Blocks();
study::Named<std::function<std::vector<Row>(const Results&)>> DerivedTables();
study::Named<std::function<Figure(const Results&)>> Figures();
study::Named<std::function<Evidence(const Results&)>> EvidenceFunctions();
std::string Notes(const Results& results);

// Returns a count of `maxima`, summed over blocks, as a share of the steps that were compared.
double ShareOf(const Frame& blocks, std::string_view column);
// Returns the largest value of a column; NaN if there is no row.
double Largest(const Frame& frame, std::string_view column);

// The steps that a row of `maxima` covers.
inline constexpr std::string_view kAllSteps = "all";
inline constexpr std::string_view kAfterWarmup = "after-warmup";

}  // namespace feature_statistics
}  // namespace numsim::experiments
