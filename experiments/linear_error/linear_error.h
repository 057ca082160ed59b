// Experiment `linear-error`: errors of the three GEMMs of a linear layer, by layer kind, format and
// operands, against the length of their inner dimension (Appendix D of [SwitchBack]). study.toml has its
// options, tables and claims.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study_file.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim::experiments {

Experiment LinearError();

// The parts below are shared between this experiment's files.
namespace linear_error {

// Values of the column `sweep`: a sweep over tokens at a fixed width (in = out), and a sweep over
// widths at a fixed number of tokens.
inline constexpr std::string_view kTokenSweep = "tokens";
inline constexpr std::string_view kWidthSweep = "width";

// Names of the GEMMs in the column `product`.
inline const std::string kForward(ToString(LinearGemm::kForward)),
    kInputGradient(ToString(LinearGemm::kInputGradient)),
    kWeightGradient(ToString(LinearGemm::kWeightGradient));

// One way of computing the layer.
struct Treatment {
  std::string kind;
  std::string format;  // format of the quantised operands; for `standard`, of all operands
  LinearRecipe recipe;
};

// Returns every layer kind with every format that it supports. Throws Error for a kind that
// supports none of the formats and for a format that no kind supports.
std::vector<Treatment> Treatments(const Settings& settings);

// Returns the thresholds of --threshold as fractions, not percent. A GEMM breaks if its error is
// above the first one.
std::vector<double> Thresholds(const Settings& settings);

// Returns the curve with these properties, without rows if it was not measured.
Frame CurveOf(const Frame& errors,
              std::string_view operands,
              std::string_view kind,
              std::string_view format,
              std::string_view product,
              std::string_view sweep);
// Returns the column with the swept length of a curve.
std::string_view LengthOf(const Frame& curve);

// Returns a column against the swept length: the geometric mean over seeds, and as a band their
// range. Rows whose value is not positive and finite are left out.
Series ValuesOf(const Frame& curve, std::string_view column);

// Returns the sweep that varies the inner dimension of a GEMM if it was measured for these
// operands, otherwise kTokenSweep.
std::string_view InnerSweep(const Frame& errors,
                            std::string_view operands,
                            std::string_view product);

// Returns the rows of the GEMM at the longest length of that sweep.
Frame LongestOf(const Frame& errors,
                std::string_view operands,
                std::string_view kind,
                std::string_view format,
                std::string_view product);

// The layer kind that quantises all three GEMMs with the scales of the paper, as LLM.int8() does,
// and the paper's own, which does not quantise dW.
inline const std::string kAllQuantized = "llm-int8", kRemedy = "switchback";

Rows Measure(const Settings& settings, const Trial& trial);
std::vector<Row> GrowthRows(const study::Results& results);
std::vector<Row> CrossingRows(const study::Results& results);
std::vector<Row> ProductRows(const study::Results& results);
std::vector<Figure> WeightGradientFigure(const study::Results& results);
std::vector<Figure> ProductFigures(const study::Results& results);
void AddClaimFunctions(study::Functions& functions);
std::string Notes(const study::Results& results);

}  // namespace linear_error
}  // namespace numsim::experiments
