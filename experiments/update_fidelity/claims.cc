// The claims of [Seed003] about single steps, and the evidence of a run. One number per seed stands
// for all formats and choices of keys: that of the panel in which it is worst for the claim.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/claims/line_fit.h"
#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/panels.h"
#include "numsim/base/elementary.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::update_fidelity {
namespace {

const double kDecade = Log(10);

constexpr Range kNothing = {kNaN, kNaN};
constexpr Range kUnknown = {-kInfinity, kInfinity};

Range Known(double value) { return {value, value}; }

// A number of one panel and seed that a claim is about.
struct Outcome {
  const char* name;
  std::function<Range(const Frame& of_seed)> of;
  const char* unknown = "";  // why it may be known as a bound alone, or not at all
  double reference = 0;
};

// Returns "-8.5 .. -8" for the values of one panel over seeds, with "at most" or "at least" if one
// is such a bound.
std::string TextOf(const std::vector<Range>& values) {
  std::vector<double> low, high;
  bool known = true;
  for (const Range& value : values) {
    low.push_back(value.low);
    high.push_back(value.high);
    known = known && !(value.low < value.high);
  }
  const auto finite = [](double end) { return !std::isinf(end); };
  if (known) return RangeText(low);
  if (std::all_of(high.begin(), high.end(), finite)) return "at most " + RangeText(high);
  if (std::all_of(low.begin(), low.end(), finite)) return "at least " + RangeText(low);
  return "not known";
}

// Compares one number per seed, the largest over the panels, with the reference.
Evidence LargestOf(const Panels& panels, const Outcome& outcome) {
  std::map<std::string, Range> largest;
  std::string text;
  for (const auto& [name, panel] : panels) {
    std::vector<Range> values;
    for (const Frame& of_seed : panel.By({"seed"})) {
      const Range value = outcome.of(of_seed);
      values.push_back(value);
      if (std::isnan(value.low)) continue;
      Range& known = largest.emplace(of_seed.Text("seed"), value).first->second;
      known = {std::max(known.low, value.low), std::max(known.high, value.high)};
    }
    text += fmt::format("\n  {:<20}  {}", name, TextOf(values));
  }
  if (largest.empty()) return NotTestedBecause("the rule was not run, or not at such rates");
  Evidence evidence = AgainstReference(outcome.name, largest, outcome.reference, outcome.unknown);
  evidence.measured = "Range over seeds:" + text;
  return evidence;
}

// Returns how many decades lie between the rate at which half of the norm of naive's step is gone
// and the greatest at which nothing moves.
Evidence FadeOf(const study::Results&, const Frame& limits) {
  return LargestOf(PanelsOf(limits),
                   {.name = "decades from half of the step to none",
                    .of =
                        [](const Frame& row) {
                          const double half = row.Number("half_norm_lr");
                          const double decades = Log(half / row.Number("unmoved_lr")) / kDecade;
                          return std::isfinite(decades) ? Known(decades) : kUnknown;
                        },
                    .unknown = "in a format, no rate below 1 is the one at which half of the "
                               "step's norm is gone, or none is so small that nothing moves"});
}

// Returns where the smallest rate lies down to which the mean of the step is kept.
Range MeanIsKeptFrom(const Frame& rows, std::string_view column) {
  const double least =
      LeastRate(rows, [&](const Frame& row) { return std::abs(row.Number(column) - 1) <= 0.1; });
  const std::vector<double> rates = rows.Numbers("lr");
  const auto [lowest, greatest] = std::minmax_element(rates.begin(), rates.end());
  if (std::isnan(least)) return {*greatest, kInfinity};  // not even there
  return least == *lowest ? Range{0, least} : Known(least);
}

Range DecadesBetween(const Range& a, const Range& b) {
  return {Log(a.low / b.high) / kDecade, Log(a.high / b.low) / kDecade};
}

// Returns the rows of a rule with the format, keys and seed of a panel.
Frame PanelOf(const Frame& all, UpdateKind rule, const Frame& panel) {
  Frame rows = all.Where("rule", ToString(rule));
  for (const char* const column : {"format", "keys", "seed"}) {
    rows = rows.Where(column, panel.Text(column));
  }
  return rows;
}

// Returns log10 of the rate down to which stochastic rounding keeps the mean step, over that of
// naive addition.
Evidence StochasticIsLonger(const study::Results& results) {
  const Frame all = results.Of("fidelity");
  for (const UpdateKind kind : {UpdateKind::kNaive, UpdateKind::kStochastic}) {
    if (PanelsOf(results, kind).empty()) {
      return NotTestedBecause(fmt::format("the rule {} was not run (--rules)", ToString(kind)));
    }
  }
  return LargestOf(PanelsOf(results, UpdateKind::kStochastic),
                   {.name = "log10 of the rates' ratio",
                    .of =
                        [&](const Frame& stochastic) {
                          const Frame naive = PanelOf(all, UpdateKind::kNaive, stochastic);
                          if (naive.Empty()) return kNothing;
                          return DecadesBetween(MeanIsKeptFrom(stochastic, "expected_mean_ratio"),
                                                MeanIsKeptFrom(naive, "mean_ratio"));
                        },
                    .unknown = "a rule keeps the mean at each rate or at none, so that rates from "
                               "--lr-low to --lr-high do not decide which keeps it for longer"});
}

double Moved(const Frame& row) { return row.Number("moved_share") * row.Number("elements"); }

// Returns the slope of log norm ratio against log lr where the ratio is at least 3 and enough
// parameters moved to know it; NaN with fewer than 3 such rows.
double NormSlope(const Frame& of_seed) {
  std::vector<double> x, y, errors;
  of_seed.ForEach([&](const Frame& row) {
    const double ratio = row.Number("norm_ratio"), moved = Moved(row);
    if (!(ratio >= 3 && moved >= 100) || std::isinf(ratio)) return;
    x.push_back(Log(row.Number("lr")));
    y.push_back(Log(ratio));
    errors.push_back(0.5 / std::sqrt(moved));
  });
  return x.size() < 3 ? kNaN : FitLine(x, y, errors).slope.value;
}

Evidence StochasticNormGrows(const study::Results& results) {
  return LargestOf(PanelsOf(results, UpdateKind::kStochastic),
                   {.name = "|slope + 1/2|", .of = [](const Frame& of_seed) {
                      return Known(std::abs(NormSlope(of_seed) + 0.5));
                    }});
}

Evidence HalfNormIsPredicted(const study::Results& results) {
  if (results.Of("naive_limits").Empty()) return NotTestedBecause(kNaiveWasNotRun);
  const Frame cliffs = results.Of("cliffs").Where("limit", "half-norm");
  return LargestOf(
      PanelsOf(cliffs),
      {.name = "|measured / predicted - 1|",
       .of =
           [](const Frame& row) {
             const double measured = row.Number("measured"), predicted = row.Number("predicted");
             if (std::isnan(measured) && std::isnan(predicted)) return kNothing;
             const double off = std::abs(measured / predicted - 1);
             return std::isfinite(off) ? Known(off) : kUnknown;
           },
       .unknown = "in a format, such a rate is either measured or predicted, and not both"});
}

// Returns the largest ratio of the norms of two steps of the same projection: of the matched one and
// of stochastic rounding.
Evidence ProjectionIsLessNoisy(const study::Results& results) {
  const Frame all = results.Of("fidelity");
  const auto largest_ratio = [&](const Frame& matched) {
    const Frame other = PanelOf(all, UpdateKind::kStochastic, matched);
    double largest = kNaN;
    matched.ForEach([&](const Frame& row) {
      const Frame stochastic = other.Where("lr", row.Text("lr"));
      if (stochastic.Empty() || !(std::abs(row.Number("projection_ratio") - 1) <= 0.01)) return;
      if (!(stochastic.Number("norm_ratio") >= 2) || !(Moved(stochastic) >= 1000)) return;
      const double ratio = row.Number("norm_ratio") / stochastic.Number("norm_ratio");
      if (!(ratio <= largest)) largest = ratio;
    });
    return Known(largest);
  };
  return LargestOf(PanelsOf(results, UpdateKind::kProjectionMatched),
                   {.name = "largest ratio of norms", .of = largest_ratio, .reference = 1});
}

Evidence CosineFollows(const study::Results& results) {
  const auto largest_error = [](const Frame& of_seed) {
    double largest = kNaN;
    of_seed.ForEach([&](const Frame& row) {
      const double share = row.Number("moved_share");
      if (!(share <= 0.1) || !(Moved(row) >= 100)) return;
      const double formula = std::sqrt(share) * row.Number("moved_update");
      const double off = std::abs(row.Number("cosine") / formula - 1);
      if (!(off <= largest)) largest = off;
    });
    return Known(largest);
  };
  return LargestOf(PanelsOf(results, UpdateKind::kNormMatched),
                   {.name = "|cosine / formula - 1|", .of = largest_error});
}

std::string LeftOut(const Settings& settings) {
  std::string text;
  for (const UpdateRule& rule : Rules(settings)) {
    for (const Format& format : ParseFormatList(settings.Get("formats"))) {
      if (Serves(rule, format)) continue;
      text += fmt::format("{} {} in {}", text.empty() ? "" : ",", ToString(rule), format.name);
    }
  }
  return text.empty() ? "" : "Left out, as the rule does not serve the format:" + text + ".\n";
}

}  // namespace

void AddClaimFunctions(study::Functions& functions) {
  AddExactEvidence(functions);
  functions.judges["fade"] = FadeOf;
  functions.evidence["half-norm"] = HalfNormIsPredicted;
  functions.evidence["stochastic-longer"] = StochasticIsLonger;
  functions.evidence["stochastic-norm"] = StochasticNormGrows;
  functions.evidence["projection-noise"] = ProjectionIsLessNoisy;
  functions.evidence["norm-cosine"] = CosineFollows;
}

std::string Notes(const study::Results& results) {
  return StateText(results) + LeftOut(results.settings) +
         "cliffs.csv: of n weights from the distribution, lr is expected to move n times the sum of "
         "P(Q(x) = w) P(|u| > h(w)/lr) over the values w of the format; half of the norm is gone "
         "where the expected square of the step, a similar sum over all boundaries that a step may "
         "pass, is lr^2/4 per weight.";
}

}  // namespace numsim::experiments::update_fidelity
