// Experiment `quantization-variance`: how the variance that quantisation adds to an inner product
// grows with its length (Appendix D of [SwitchBack]).
#pragma once

#include <string>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments {

Experiment QuantizationVariance();

// The parts below are shared between this experiment's files.
namespace quantization_variance {

inline constexpr std::string_view kVarianceTable = "variance";
inline constexpr std::string_view kSlopesTable = "slopes";
inline constexpr std::string_view kRatiosTable = "dimension_ratios";

// One way of quantising both operands.
struct Treatment {
  Format format;
  ScaleLayout layout;
  Rounding rounding;
};

// Returns every treatment of a trial. Stochastic rounding has only the first granularity.
std::vector<Treatment> Treatments(const Settings& settings, const Trial& trial);

// Returns the lengths of the sweep: the powers of two from --k-low to --k-high.
std::vector<size_t> SweepLengths(const Settings& settings);

// An inner dimension that Appendix D.3 names, or one of the real model.
struct NamedDimension {
  std::string_view model;
  std::string_view operation;
  size_t length;
};

// Two matmuls whose noise D.3 compares; `claimed` is the variance of `noisy` over that of `quiet`.
struct DimensionRatio {
  NamedDimension noisy, quiet;
  double claimed;  // 0: not in the paper
  std::string_view note;
};
const std::vector<DimensionRatio>& DimensionRatios();

// Returns the sources of operands: distribution names, or that of InputSource() with --input.
std::vector<std::string> Sources(const Settings& settings);

// The rows of variance.csv that agree in everything except k and seed.
struct Curve {
  std::string source, format, granularity, rounding;
  std::vector<size_t> rows;  // indices of the rows of the sweep
};
std::vector<Curve> Curves(const Table& variance);

// Returns the log-log slope of sigma_q2 against k with the interval of the scatter about the line;
// NaN for fewer than three points.
Estimate SigmaSlope(const Table& variance, const Curve& curve);

// Returns a sentence about the granularities that relative-error leaves out because their errors
// are those of another one; "" if there are none.
std::string EqualPanelsNote(const Settings& settings, const Table& variance);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

}  // namespace quantization_variance
}  // namespace numsim::experiments
