// Experiment `linear-error`: errors of the three products of a linear layer, by layer kind, format
// and operands, against the length of their inner dimension (Appendix D of [SwitchBack]).
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

// The two sweeps, values of the column `sweep`: tokens at a fixed width (in = out), and widths at
// fixed tokens.
inline constexpr std::string_view kTokenSweep = "tokens";
inline constexpr std::string_view kWidthSweep = "width";

// A growth exponent (log-log slope) of the noise variance above which it counts as growing, and one
// of the relative error from which on the noise is said to overtake the signal: half of what a
// noise that grows linearly against a fixed signal would have.
inline constexpr double kVarianceGrowth = 0.5;
inline constexpr double kRelativeGrowth = 0.25;

// One way of computing the layer.
struct Treatment {
  std::string kind;
  std::string format;  // of quantised operands; of all of them for `standard`
  LinearRecipe recipe;
};

// Every kind with every format that it can be built of. Throws Error for a kind or a format that
// cannot be used at all.
std::vector<Treatment> Treatments(const Settings& settings);

// Shares of --threshold: fractions, not percent. The first says what breaks.
std::vector<double> Thresholds(const Settings& settings);

// The rows of errors.csv that share everything but the swept length and the seed.
struct Curve {
  std::string operands, kind, format, product, sweep;
  std::vector<size_t> rows;
};
// In the order of the table.
std::vector<Curve> Curves(const Table& errors);
// nullptr when it was not measured.
const Curve* FindCurve(const std::vector<Curve>& curves,
                       std::string_view operands,
                       std::string_view kind,
                       std::string_view format,
                       LinearGemm product,
                       std::string_view sweep);

// A column of a curve against the swept length: geometric means over seeds with the least and the
// greatest of them. Rows whose value is not positive and finite are left out.
struct SweptValues {
  std::vector<double> x, mean, low, high;
};
SweptValues ValuesOf(const Table& errors, const Curve& curve, std::string_view column);

// Inverse of Name. Throws Error for another text, which a damaged CSV may have.
LinearGemm ProductNamed(std::string_view name);

// The sweep that varies the product's own inner dimension, where it was measured, else the tokens.
std::string_view InnerSweep(const std::vector<Curve>& curves,
                            std::string_view operands,
                            LinearGemm product);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

}  // namespace linear_error
}  // namespace numsim::experiments
