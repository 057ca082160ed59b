// Outcomes of the claims of Appendix D of [SwitchBack] about the GEMMs of a layer, and the notes below them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/linear_error/linear_error.h"
#include "experiments/linear_error/operands.h"
#include "experiments/shared/log_slope.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::linear_error {
namespace {

// Where SwitchBack is needed under these operands and format: the lists of the note.
struct Needed {
  std::string yes, no, not_enough;
};

void Append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : "; ") + item;
}

void AddCase(const Frame& quantized, const Frame& remedy, double level, Needed& needed) {
  const auto error = [](const Frame& rows, const std::string& product) {
    return rows.Where("product", product).Number("relative_error");
  };
  const std::string name = quantized.Text("operands") + " " + quantized.Text("format");
  if (error(remedy, kForward) > level || error(remedy, kInputGradient) > level) {
    Append(needed.not_enough, name);
  } else {
    Append(error(quantized, kWeightGradient) > level ? needed.yes : needed.no, name);
  }
}

// Compares errors at the longest inner dimensions with the first --threshold.
std::string NeededText(const Settings& settings, const Frame& products) {
  const double level = Thresholds(settings).front();
  Needed needed;
  for (const Frame& layer : products.Where("kind", kAllQuantized).By({"operands", "format"})) {
    const Frame remedy = products.Where("kind", kRemedy)
                             .Where("operands", layer.Text("operands"))
                             .Where("format", layer.Text("format"));
    if (!remedy.Empty()) AddCase(layer, remedy, level, needed);
  }
  const auto text = [](const std::string& list) { return list.empty() ? "none" : list; };
  return fmt::format(
      "SwitchBack is needed where dW's relative error is above {:g} % under llm-int8 and the "
      "errors of SwitchBack's Y and dX are not: {}. Not needed, because dW is not above it: {}. "
      "Not enough, because Y or dX is above it under SwitchBack too: {}.\n",
      100 * level,
      text(needed.yes),
      text(needed.no),
      text(needed.not_enough));
}

// Returns why tensors are no evidence: all seeds have those of one training. The seeds then differ in
// the choice of rows alone, and their scatter says nothing about other trainings.
std::string OneTraining(const study::Results& results) {
  const Settings& settings = results.settings;
  if (!HasTensors(settings)) return "";
  for (const char* const option : {"tensor-x", "tensor-w", "tensor-g"}) {
    if (!settings.Get(option).empty()) continue;
    return fmt::format("--{} is not given, so that operand is drawn", option);
  }
  if (TensorsDifferBySeed(settings)) return "";
  return "one training is an illustration; with {seed} in every path of --input each seed has its own";
}

// Returns why no slope is judged, and which option gives enough lengths.
std::string TooFewLengths(const study::Results& results, const Frame& curve) {
  const size_t lengths = curve.Distinct(LengthOf(curve)).size();
  if (lengths >= 3) return "";
  const auto low = static_cast<double>(results.settings.GetInteger("tokens-low", 1, 1 << 20));
  const double remedy = std::max(1.0, std::ldexp(low, static_cast<int>(lengths) - 5));
  std::string option = "use more tokens";
  if (curve.Text("sweep") == kWidthSweep) {
    option = "use more --dims";
  } else if (remedy < low) {
    option = fmt::format("try --tokens-low {:g}", remedy);
  }
  return fmt::format(
      "{}, a slope needs three; {}", lengths == 1 ? "one length" : "two lengths", option);
}

// Returns the outcome of a seed that is the slope of a column against the inner dimension.
auto Growth(const char* column) {
  return [=](const Frame& seed) { return LogSlope(seed, LengthOf(seed), column).value; };
}

double Log2Of(const Frame& row, std::string_view column) {
  const double value = row.Number(column);
  return value > 0 ? std::log2(value) : kNaN;
}

// Returns the rows of the GEMMs of a layer kind, each at its longest inner dimension.
Frame LongestRows(const study::Results&, const Frame& rows) {
  const auto key = [](const Frame& row) {
    return fmt::format(
        "{} {} {} {}", row.Text("product"), row.Text("sweep"), row.Text("tokens"), row.Text("in"));
  };
  std::set<std::string> longest;
  for (const Frame& curve : rows.By({"operands", "format", "product"})) {
    const Frame last = LongestOf(rows,
                                 curve.Text("operands"),
                                 curve.Text("kind"),
                                 curve.Text("format"),
                                 curve.Text("product"));
    if (!last.Empty()) longest.insert(key(last));
  }
  return rows.Where([&](const Frame& row) { return longest.contains(key(row)); });
}

// The smaller one of D.3's ratios of CLIP, of lengths and so of variances.
constexpr double kLeastRatio = 12.8;

// Returns why dW's inner dimension is not as much longer than those of Y and dX as D.3 says; "" if it is.
std::string ShortOfClip(const study::Results& results, const Frame& rows) {
  const Frame longest = LongestRows(results, rows);
  const Frame dw = longest.Where("product", kWeightGradient);
  for (const std::string& other : {kForward, kInputGradient}) {
    const double width = longest.Where("product", other).Number("inner");
    if (dw.Number("inner") >= kLeastRatio * width) continue;
    return fmt::format(
        "out of reach: b = {} is less than {} times the inner dimension {:g} of {}; see --tokens-high",
        dw.Text("inner"),
        kLeastRatio,
        width,
        other == kForward ? "Y" : "dX");
  }
  return "";
}

// Returns Y over widths and dW over tokens.
Frame InnerDimensions(const study::Results&, const Frame& rows) {
  return rows.Where([](const Frame& row) {
    return (row.Text("product") == kForward && row.Text("sweep") == kWidthSweep) ||
           (row.Text("product") == kWeightGradient && row.Text("sweep") == kTokenSweep);
  });
}

Frame MostTokens(const study::Results&, const Frame& rows) {
  double most = 0;
  for (const double tokens : rows.Numbers("tokens")) most = std::max(most, tokens);
  return rows.Where("tokens", static_cast<uint64_t>(most));
}

double WorstPercent(const Frame& seed) {
  double worst = 0;
  for (const double error : seed.Numbers("relative_error")) worst = std::max(worst, 100 * error);
  return worst;
}

}  // namespace

void AddClaimFunctions(study::Functions& functions) {
  functions.values["threshold"] = [](const Settings& settings) {
    return fmt::format("{}", 100 * Thresholds(settings).front());
  };
  functions.obstacles["one-training"] = OneTraining;
  functions.unfit = {{"few-lengths", TooFewLengths}, {"short-of-clip", ShortOfClip}};
  functions.rows = {
      {"longest", LongestRows}, {"most-tokens", MostTokens}, {"inner-dimensions", InnerDimensions}};
  functions.outcomes = {
      {"noise-growth", Growth("error_variance")},
      {"relative-growth", Growth("relative_error")},
      {"log-error", [](const Frame& row) { return Log2Of(row, "relative_error"); }},
      {"noise-over-length",
       [](const Frame& row) {
         return Log2Of(row, "error_variance") - std::log2(row.Number("inner"));
       }},
      {"worst-percent", WorstPercent}};
}

std::string Notes(const study::Results& results) {
  return NeededText(results.settings, results.Of("products")) +
         "With independent tokens of mean zero, dW is itself sampling noise: quantisation adds to "
         "its variance the square of the relative error, the same share at any b as long as that "
         "error does not change. Frobenius errors are dominated by the largest rows and columns; "
         "row_error and column_error are medians, which are not. crossings.csv has the number of "
         "tokens from which dW exceeds a relative error.";
}

}  // namespace numsim::experiments::linear_error
