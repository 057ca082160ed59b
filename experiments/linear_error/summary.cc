// The summary of `linear-error`: verdicts on Appendix D's argument, from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "experiments/core/verdict.h"
#include "experiments/linear_error/linear_error.h"
#include "experiments/shared/distinct.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::linear_error {
namespace {

// The layer kind that quantises all three GEMMs with the scales of the paper, as LLM.int8() does.
constexpr std::string_view kAllQuantized = "llm-int8";
constexpr std::string_view kRemedy = "switchback";

std::string_view Symbol(LinearGemm product) {
  return product == LinearGemm::kForward         ? "Y"
         : product == LinearGemm::kInputGradient ? "dX"
                                                 : "dW";
}

struct Results {
  const Settings& settings;
  const Table& errors;
  const Table& growth;
  const Table& crossings;
  const Table& products;
  std::vector<Curve> curves;
};

void Append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : "; ") + item;
}

// Returns the rows of a derived table in which each {column, text} pair of `cells` matches.
std::vector<size_t> RowsWhere(const Table& table,
                              const std::vector<std::array<std::string_view, 2>>& cells) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const bool all = std::all_of(cells.begin(), cells.end(), [&](const auto& cell) {
      return table.Text(r, cell[0]) == cell[1];
    });
    if (all) rows.push_back(r);
  }
  return rows;
}

std::string SlopeText(const Table& growth, size_t r, const std::string& column) {
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]",
                     growth.Number(r, column),
                     growth.Number(r, column + "_low"),
                     growth.Number(r, column + "_high"));
}

// Returns true if the row of growth.csv belongs to the sweep over the inner dimension of its GEMM.
bool SweepsInner(const Table& growth, size_t r) {
  const bool weight_gradient = growth.Text(r, "product") == ToString(LinearGemm::kWeightGradient);
  return weight_gradient == (growth.Text(r, "sweep") == kTokenSweep);
}

Estimate SlopeOf(const Table& growth, size_t r, const std::string& column) {
  return {growth.Number(r, column),
          growth.Number(r, column + "_low"),
          growth.Number(r, column + "_high")};
}

// Returns whether the slope in a row of growth.csv is above `limit`; undecided if it is from fewer
// than three lengths.
Answer SlopeAnswer(const Results& in, size_t r, const std::string& column, double limit) {
  const Curve* curve = FindCurve(in.curves,
                                 in.growth.Text(r, "operands"),
                                 in.growth.Text(r, "kind"),
                                 in.growth.Text(r, "format"),
                                 ProductNamed(in.growth.Text(r, "product")),
                                 in.growth.Text(r, "sweep"));
  if (ValuesOf(in.errors, *curve, "relative_error").x.size() < 3) return Answer::kUndecided;
  return IsAbove(SlopeOf(in.growth, r, column), limit);
}

std::string SlopeBasis(const Tally& tally) {
  if (tally.Undecided() == 0) return "";
  return tally.UndecidedText() +
         ": fewer than three lengths, or an interval that contains the criterion; use more "
         "lengths or --seeds";
}

Claim NoiseClaim(const Results& in) {
  std::string list;
  Tally tally;
  for (const size_t r : RowsWhere(in.growth, {{"operands", "normal"}, {"kind", kAllQuantized}})) {
    if (!SweepsInner(in.growth, r) || std::isnan(in.growth.Number(r, "noise_growth"))) continue;
    Append(list,
           fmt::format("{} {} {}",
                       Symbol(ProductNamed(in.growth.Text(r, "product"))),
                       in.growth.Text(r, "format"),
                       SlopeText(in.growth, r, "noise_growth")));
    tally.Add(SlopeAnswer(in, r, "noise_growth", kVarianceGrowth));
  }
  return {
      "The variance due to quantisation increases with the inner dimension k, linearly for a "
      "constant sigma_q (Eq. 12).",
      list.empty()
          ? "llm-int8 was not measured on normal operands."
          : fmt::format("Log-log slope of the noise variance of an output element against the "
                        "GEMM's inner dimension, {} on normal operands, with its 95 % "
                        "interval: {}. Criterion: every interval above {}. Slopes above 1 come "
                        "from the growth of sigma_q^2 with absmax.",
                        kAllQuantized,
                        list,
                        kVarianceGrowth),
      tally.Verdict(),
      SlopeBasis(tally)};
}

// Growth of dW's relative error and of its signal with b under llm-int8: a text about each case,
// and whether the relative error grows in it.
struct GrowthCases {
  std::string list;
  Tally grow;
};
GrowthCases WeightGradientGrowth(const Results& in, bool normal) {
  GrowthCases cases;
  const auto rows = RowsWhere(in.growth,
                              {{"kind", kAllQuantized},
                               {"product", ToString(LinearGemm::kWeightGradient)},
                               {"sweep", kTokenSweep}});
  for (const size_t r : rows) {
    const std::string& operands = in.growth.Text(r, "operands");
    const std::string& format = in.growth.Text(r, "format");
    const double slope = in.growth.Number(r, "relative_growth");
    if (std::isnan(slope) || (operands == "normal") != normal) continue;
    const Curve* curve = FindCurve(
        in.curves, operands, kAllQuantized, format, LinearGemm::kWeightGradient, kTokenSweep);
    const SweptValues values = ValuesOf(in.errors, *curve, "relative_error");
    Append(cases.list,
           fmt::format("{} {} {}, from {:.2f} % to {:.2f} %, signal {:.2f}",
                       operands,
                       format,
                       SlopeText(in.growth, r, "relative_growth"),
                       100 * values.mean.front(),
                       100 * values.mean.back(),
                       in.growth.Number(r, "signal_growth")));
    cases.grow.Add(SlopeAnswer(in, r, "relative_growth", kRelativeGrowth));
  }
  return cases;
}

// Judges D.2, for the normal operands that Appendix D assumes or for all others.
Claim DrownClaim(const Results& in, bool normal) {
  const GrowthCases cases = WeightGradientGrowth(in, normal);
  return {
      normal ? "For large k the noise drowns out useful signal (D.2): with operands as in D.1, "
               "independent and of mean zero, here normal."
             : "For large k the noise drowns out useful signal (D.2): with other operands.",
      cases.list.empty()
          ? "llm-int8 was not measured on such operands at three or more token counts."
          : fmt::format("Log-log slope of dW's relative error against b, {}, with its 95 % "
                        "interval, the error at the fewest and the most tokens, and the slope "
                        "of the signal's variance: {}. A noise variance that grows like b "
                        "against a fixed signal has slope 0.5; criterion: an interval above {}, "
                        "true in {} of {} cases.",
                        kAllQuantized,
                        cases.list,
                        kRelativeGrowth,
                        cases.grow.Yes(),
                        cases.grow.Cases()),
      cases.grow.Verdict(),
      SlopeBasis(cases.grow)};
}

// Returns the index of the length `x`, or the last index if that length was not measured.
size_t IndexOf(const SweptValues& values, double x) {
  const auto found = std::find(values.x.begin(), values.x.end(), x);
  return found == values.x.end() ? values.x.size() - 1
                                 : static_cast<size_t>(found - values.x.begin());
}

// Returns the indices of the lengths that D.3 compares; if none of them was measured, those of the
// shortest and the longest length.
std::vector<size_t> QuietLengths(const SweptValues& forward) {
  std::vector<size_t> lengths;
  for (size_t i = 0; i < forward.x.size(); ++i) {
    if (forward.x[i] == 1280 || forward.x[i] == 5120) lengths.push_back(i);
  }
  if (!lengths.empty()) return lengths;
  lengths = {0};
  if (forward.x.size() > 1) lengths.push_back(forward.x.size() - 1);
  return lengths;
}

// Formats noisy over quiet with the range over seeds, "5.30 [5.00, 5.60]"; omits an empty range.
std::string RatioText(const SweptValues& noisy, size_t i, const SweptValues& quiet, size_t j) {
  const double ratio = noisy.mean[i] / quiet.mean[j];
  const double low = noisy.low[i] / quiet.high[j], high = noisy.high[i] / quiet.low[j];
  if (low == high) return fmt::format("{:.2f}", ratio);
  return fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio, low, high);
}

Claim RatioClaim(const Results& in) {
  std::string list;
  Tally tally;
  for (const std::string& format : Distinct(in.errors, "format")) {
    const Curve* dw = FindCurve(
        in.curves, "normal", kAllQuantized, format, LinearGemm::kWeightGradient, kTokenSweep);
    const Curve* y =
        FindCurve(in.curves, "normal", kAllQuantized, format, LinearGemm::kForward, kWidthSweep);
    if (dw == nullptr || y == nullptr) continue;
    const SweptValues noisy = ValuesOf(in.errors, *dw, "error_variance");
    const SweptValues quiet = ValuesOf(in.errors, *y, "error_variance");
    const SweptValues noisy_error = ValuesOf(in.errors, *dw, "relative_error");
    const SweptValues quiet_error = ValuesOf(in.errors, *y, "relative_error");
    if (noisy.x.size() != noisy_error.x.size() || quiet.x.size() != quiet_error.x.size()) continue;
    if (noisy.x.empty() || quiet.x.empty()) continue;
    const size_t b = IndexOf(noisy, 65536);
    for (const size_t n : QuietLengths(quiet)) {
      const double expected = noisy.x[b] / quiet.x[n];
      Append(list,
             fmt::format("{} dW at {:.0f} against Y at {:.0f}: lengths {:.1f}, variance {}, "
                         "relative error {}",
                         format,
                         noisy.x[b],
                         quiet.x[n],
                         expected,
                         RatioText(noisy, b, quiet, n),
                         RatioText(noisy_error, b, quiet_error, n)));
      tally.Add(IsAbove({noisy.mean[b] / quiet.mean[n],
                         noisy.low[b] / quiet.high[n],
                         noisy.high[b] / quiet.low[n]},
                        expected / 2));
    }
  }
  return {
      "CLIP ViT-Huge's weight gradient (b = 65536) is 12.8 to 51.2 times as noisy as its other "
      "matmuls (n = 5120, 1280), where noise means variance (D.3).",
      list.empty() ? "llm-int8 was not measured on normal operands in both sweeps."
                   : fmt::format("Ratios with their range over seeds, {} on normal operands of "
                                 "variance 1: {}. Criterion: the ratio of variances above half "
                                 "the ratio of lengths.",
                                 kAllQuantized,
                                 list),
      tally.Verdict(),
      tally.UndecidedText()};
}

// Relative errors of the three GEMMs, each at its longest inner dimension.
struct Case {
  std::string operands, format;
  double error[3] = {kNaN, kNaN, kNaN};
  double Of(LinearGemm p) const { return error[static_cast<int>(p)]; }
  // Returns true if all three errors are known.
  bool IsKnown() const { return !std::isnan(error[0] + error[1] + error[2]); }
  double Others() const {
    return std::max(Of(LinearGemm::kForward), Of(LinearGemm::kInputGradient));
  }
  std::string Text() const {
    return fmt::format("{} {} {:.2f} / {:.2f} / {:.2f}",
                       operands,
                       format,
                       100 * error[0],
                       100 * error[1],
                       100 * error[2]);
  }
};

std::vector<Case> CasesOf(const Results& in, std::string_view kind) {
  std::vector<Case> cases;
  for (const size_t r : RowsWhere(in.products, {{"kind", kind}})) {
    const std::string& operands = in.products.Text(r, "operands");
    const std::string& format = in.products.Text(r, "format");
    auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& c) {
      return c.operands == operands && c.format == format;
    });
    if (found == cases.end()) found = cases.insert(cases.end(), Case{operands, format});
    const LinearGemm product = ProductNamed(in.products.Text(r, "product"));
    found->error[static_cast<int>(product)] = in.products.Number(r, "relative_error");
  }
  return cases;
}

Claim CauseClaim(const Results& in) {
  const double level = Thresholds(in.settings).front();
  const std::vector<Case> cases = CasesOf(in, kAllQuantized);
  std::string list, alone;
  Tally tally;
  for (const Case& c : cases) {
    Append(list, c.Text());
    const bool only = c.Of(LinearGemm::kWeightGradient) > level && !(c.Others() > level);
    tally.Add(c.IsKnown() ? AnswerOf(only) : Answer::kUndecided);
    if (c.IsKnown() && only) Append(alone, c.operands + " " + c.format);
  }
  return {"LLM.int8() fails because the weight gradient is the noisy matmul (D.3).",
          list.empty()
              ? "llm-int8 was not measured."
              : fmt::format("Relative errors of Y / dX / dW in percent, {}, each GEMM at its "
                            "longest inner dimension: {}. dW alone is above {:g} % for: {}. The "
                            "lengths are the same in all cases; only the operands differ.",
                            kAllQuantized,
                            list,
                            100 * level,
                            alone.empty() ? "none" : alone),
          tally.Verdict(),
          tally.UndecidedText()};
}

Claim RemedyClaim(const Results& in) {
  const double level = Thresholds(in.settings).front();
  std::string list;
  Tally tally;
  for (const Case& c : CasesOf(in, kRemedy)) {
    Append(list, c.Text());
    const bool good = c.Of(LinearGemm::kWeightGradient) <= level && c.Others() <= level;
    tally.Add(c.IsKnown() ? AnswerOf(good) : Answer::kUndecided);
  }
  return {
      "SwitchBack may reach high accuracy, as it avoids quantising the matmul whose k is very "
      "large (Appendix D).",
      list.empty()
          ? "switchback was not measured."
          : fmt::format("Relative errors of Y / dX / dW in percent, {}, each GEMM at "
                        "its longest inner dimension: {}. Criterion: all at or below {:g} %.",
                        kRemedy,
                        list,
                        100 * level),
      tally.Verdict(),
      tally.UndecidedText()};
}

std::string CrossingText(const Results& in, const Case& c, double level) {
  for (const size_t r : RowsWhere(in.crossings,
                                  {{"operands", c.operands},
                                   {"kind", kAllQuantized},
                                   {"format", c.format},
                                   {"threshold", FormatCell(100 * level)}})) {
    if (in.crossings.Text(r, "status") != "reached") return in.crossings.Text(r, "status");
    return fmt::format("from b = {:.0f} on", in.crossings.Number(r, "tokens"));
  }
  return "";
}

std::string Needed(const Results& in) {
  const double level = Thresholds(in.settings).front();
  const std::vector<Case> quantized = CasesOf(in, kAllQuantized), remedy = CasesOf(in, kRemedy);
  std::string needed, not_needed, not_enough;
  for (const Case& c : quantized) {
    const auto same = std::find_if(remedy.begin(), remedy.end(), [&](const Case& r) {
      return r.operands == c.operands && r.format == c.format;
    });
    if (same == remedy.end()) continue;
    const std::string name = c.operands + " " + c.format;
    if (same->Others() > level) {
      Append(not_enough, name);
    } else if (c.Of(LinearGemm::kWeightGradient) > level) {
      Append(needed, fmt::format("{} ({})", name, CrossingText(in, c, level)));
    } else {
      Append(not_needed, name);
    }
  }
  if (needed.empty() && not_needed.empty() && not_enough.empty()) return "";
  const auto text = [](const std::string& list) { return list.empty() ? "none" : list; };
  return fmt::format(
      "SwitchBack is needed where dW's relative error is above {:g} % under llm-int8 and the "
      "errors of SwitchBack's Y and dX are not: {}. Not needed, because dW is not above it: {}. "
      "Not enough, because Y or dX is above it under SwitchBack too: {}. ",
      100 * level,
      text(needed),
      text(not_needed),
      text(not_enough));
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Results in{settings,
                   tables.at(std::string(kErrorsTable)),
                   tables.at(std::string(kGrowthTable)),
                   tables.at(std::string(kCrossingsTable)),
                   tables.at(std::string(kProductsTable)),
                   Curves(tables.at(std::string(kErrorsTable)))};
  Summary summary;
  const Claim noise = NoiseClaim(in), drown = DrownClaim(in, true), others = DrownClaim(in, false),
              cause = CauseClaim(in);
  summary.claims = {noise, drown, others, RatioClaim(in), cause, RemedyClaim(in)};
  summary.notes = fmt::format(
      "Appendix D's argument in short. Noise grows with the inner dimension: {}. It drowns the "
      "signal of normal, independent operands: {}; of others: {}. The weight gradient is the "
      "GEMM that breaks: {}. ",
      noise.verdict,
      drown.verdict,
      others.verdict,
      cause.verdict);
  summary.notes +=
      Needed(in) +
      "With independent tokens of mean zero, dW is itself sampling noise: quantisation adds to its "
      "variance the square of the relative error, the same share at any b as long as that error "
      "does not change. Frobenius errors are dominated by the largest rows and columns; "
      "row_error and column_error in errors.csv are medians, which are not. products.csv lists the "
      "measures under which each kind, format and GEMM breaks; crossings.csv the number of tokens "
      "b from which dW exceeds a relative error.";
  return summary;
}

}  // namespace numsim::experiments::linear_error
