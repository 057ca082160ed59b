// Experiment `quantization-variance`: how the variance that quantisation adds to an inner product
// grows with its length (Appendix D of [SwitchBack]). study.toml has its options, tables, claims and figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study_file.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"

namespace numsim::experiments {

Experiment QuantizationVariance();

// The parts below are shared between this experiment's files.
namespace quantization_variance {

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

// Returns the first of --granularities, by which the claims are judged.
std::string FirstGranularity(const Settings& settings);

// Returns the standard error of log(var_error) that belongs to the interval of var_error.
double LogVarianceError(const Frame& row);
// Returns the standard error of log(relative_error), half of that.
double LogRelativeError(const Frame& row);

// Returns a sentence about the granularities that relative-error leaves out because their errors
// are those of another one; "" if there are none.
std::string EqualPanelsNote(const study::Results& results);

Rows Measure(const Settings& settings, const Trial& trial);
std::vector<Row> SlopeRows(const study::Results& results);
std::vector<Row> RatioRows(const study::Results& results);
Figure RelativeFigure(const study::Results& results);
void AddClaimFunctions(study::Functions& functions);
std::string Notes(const study::Results& results);

}  // namespace quantization_variance
}  // namespace numsim::experiments
