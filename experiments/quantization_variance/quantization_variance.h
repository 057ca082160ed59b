// Experiment `quantization-variance`: how the variance that quantisation adds to an inner product
// grows with its length (Appendix D of [SwitchBack]).
#pragma once

#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"

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

// Equivalences have as their control heavy-tailed operands in int8. The largest of k of them grows as
// k^(1/3), and with it the spacing: their errors have neither one size nor independence.
inline constexpr const char *kControlSource = "student-t3", *kControlFormat = "int8";
inline constexpr const char* kControl = "the same of student-t3 operands in int8";

// Returns the first of --granularities, by which the claims are judged.
std::string FirstGranularity(const Settings& settings);

// Returns the rows of the sweep as curves, whose rows agree in everything except k and seed.
std::vector<Frame> Curves(const Table& variance);

// Returns the standard error of log(var_error) that belongs to the interval of var_error.
double LogVarianceError(const Frame& row);
// Returns the standard error of log(relative_error), half of that.
double LogRelativeError(const Frame& row);

// Returns a sentence about the granularities that relative-error leaves out because their errors
// are those of another one; "" if there are none.
std::string EqualPanelsNote(const Settings& settings, const Table& variance);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
// Return those of them about the paper's own model, which are exact, and about D.3.
std::vector<ClaimSpec> ModelClaims();
std::vector<ClaimSpec> RatioClaims();
std::string Notes(const Settings& settings, const Tables& tables);

}  // namespace quantization_variance
}  // namespace numsim::experiments
