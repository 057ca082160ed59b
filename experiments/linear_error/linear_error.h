// Experiment `linear-error`: errors of the three GEMMs of a linear layer, by layer kind, format and
// operands, against the length of their inner dimension (Appendix D of [SwitchBack]).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim::experiments {

Experiment LinearError();

// The parts below are shared between this experiment's files.
namespace linear_error {

inline constexpr std::string_view kErrorsTable = "errors";
inline constexpr std::string_view kGrowthTable = "growth";
inline constexpr std::string_view kCrossingsTable = "crossings";
inline constexpr std::string_view kProductsTable = "products";

// Values of the column `sweep`: a sweep over tokens at a fixed width (in = out), and a sweep over
// widths at a fixed number of tokens.
inline constexpr std::string_view kTokenSweep = "tokens";
inline constexpr std::string_view kWidthSweep = "width";

// Thresholds of growth exponents (log-log slopes): the noise variance counts as growing above
// kVarianceGrowth; the noise counts as overtaking the signal if the relative error grows with at
// least kRelativeGrowth. Each is half the exponent of a noise variance that grows linearly against
// a fixed signal.
inline constexpr double kVarianceGrowth = 0.5;
inline constexpr double kRelativeGrowth = 0.25;

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

// The rows of errors.csv that agree in everything except the swept length and the seed.
struct Curve {
  std::string operands, kind, format, product, sweep;
  std::vector<size_t> rows;  // indices of the rows
};
// Returns the curves in the order of the table.
std::vector<Curve> Curves(const Table& errors);
// Returns the curve with these properties, or nullptr when it was not measured.
const Curve* FindCurve(const std::vector<Curve>& curves,
                       std::string_view operands,
                       std::string_view kind,
                       std::string_view format,
                       LinearGemm product,
                       std::string_view sweep);

// A column of a curve against the swept length: the geometric mean, minimum and maximum over seeds.
// Rows whose value is not positive and finite are left out.
struct SweptValues {
  std::vector<double> x, mean, low, high;
};
SweptValues ValuesOf(const Table& errors, const Curve& curve, std::string_view column);

// Inverse of ToString(LinearGemm). Throws Error for any other text, which a damaged CSV may hold.
LinearGemm ProductNamed(std::string_view name);

// Returns the sweep that varies the GEMM's own inner dimension if it was measured for these
// operands, otherwise kTokenSweep.
std::string_view InnerSweep(const std::vector<Curve>& curves,
                            std::string_view operands,
                            LinearGemm product);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

}  // namespace linear_error
}  // namespace numsim::experiments
