// The summary of `update-fidelity`: verdicts on the claims of [Seed003], from the tables.
#include "experiments/update_fidelity/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "numsim/base/elementary.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "numsim/stats/line_fit.h"

namespace numsim::experiments::update_fidelity {
namespace {

// Returns true if the note's search met its own target.
bool Converged(const Table& table, size_t row, double rtol) {
  return std::abs(table.Number(row, "own_target_ratio") - 1) < rtol;
}

Claim SmallRatesClaim(const Table& table, double rtol) {
  Claim claim;
  claim.claim =
      "The search works for learning rates below 1e-9, much smaller than any other method, "
      "without increasing the per-parameter error (introduction; Empirics, Precision: "
      "\"Iterative\").";
  size_t tried = 0, close = 0, converged = 0;
  double least_error = std::numeric_limits<double>::infinity();
  std::string text;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kNoteAsPrinted)) {
    for (const size_t i : panel.rows) {
      if (table.Number(i, "lr") > 1e-9) continue;
      ++tried;
      const double error = table.Number(i, "relative_error");
      close += table.Number(i, "norm_error") <= 0.1 && error <= 1;
      converged += Converged(table, i, rtol);
      least_error = std::min(least_error, error);
    }
    const CurveKey& key = panel.key;
    const auto converges = [&](size_t i) { return Converged(table, i, rtol); };
    const double least = LeastRate(table, panel, converges);
    text += fmt::format(
        "\n  {:<10} {:<11}  lr >= {:<9}  there ||step||/(lr||u||) {:<8}  relative error {}",
        panel.key.format,
        panel.key.keys,
        Number(least),
        Number(MeanAt(CurveOf(table, key, "norm_ratio"), least)),
        Number(MeanAt(CurveOf(table, key, "relative_error"), least)));
  }
  claim.measured = fmt::format(
      "Of {} searches at lr <= 1e-9, {} met their own target; {} took a step whose norm is within "
      "10 % of lr||u|| and whose relative error ||step - lr u||/(lr||u||) is at most 1, the error "
      "of not moving at all (criterion). The smallest such error is {}. Rates down to which every "
      "search met its own target, with the means at these rates:{}",
      tried,
      converged,
      close,
      std::isinf(least_error) ? "none" : Number(least_error),
      text);
  claim.verdict = Verdict(tried > 0, close == tried, close > 0);
  return claim;
}

Claim TargetClaim(const Table& table, double rtol) {
  Claim claim;
  claim.claim =
      "The search scales the update so that the observed step has the norm that the learning rate "
      "asks for (Collective Precision; Algorithm: \"achieve target norm\").";
  size_t converged = 0, right = 0;
  double off_root = 0, off_target = 0;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kNoteAsPrinted)) {
    for (const size_t i : panel.rows) {
      const double lr = table.Number(i, "lr");
      // At lr = 1 both interpretations of the target agree.
      if (!Converged(table, i, rtol) || lr > 0.5) continue;
      ++converged;
      right += table.Number(i, "norm_error") <= 0.1;
      const double ratio = table.Number(i, "norm_ratio");
      off_root = std::max(off_root, std::abs(ratio * std::sqrt(lr) - 1));
      off_target = std::max(off_target, std::abs(table.Number(i, "own_target_ratio") - 1));
    }
  }
  claim.measured = fmt::format(
      "The code compares two squares with a single factor lr: it matches ||step||^2 to "
      "lr||u||^2, not to lr^2||u||^2, and so runs at the learning rate sqrt(lr). In the {} "
      "searches at lr <= 0.5 that met that target, ||step||/(lr||u||) is 1/sqrt(lr) to within {} % "
      "(its own target to within {} %), and within 10 % of 1 (criterion) in {}.",
      converged,
      Number(100 * off_root),
      Number(100 * off_target),
      right);
  claim.verdict = Verdict(converged > 0, right == converged, right > 0);
  return claim;
}

Claim NaiveClaim(const Table& table) {
  Claim claim;
  claim.claim =
      "Naive addition zeros out rapidly as the update falls below a minimum learning rate "
      "(Empirics, Precision: \"Naive Addition\").";
  size_t dead = 0, sharp = 0;
  Tally tally;
  std::string text;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kNaive)) {
    const CurveKey& key = panel.key;
    const auto over_half = [](double error) { return error > 0.5; };
    const auto below_half = [](double ratio) { return ratio < 0.5; };
    const auto nothing = [](double share) { return share == 0; };
    const double onset = GreatestRate(CurveOf(table, key, "norm_error"), over_half);
    const double half = GreatestRate(CurveOf(table, key, "norm_ratio"), below_half);
    const double none = GreatestRate(CurveOf(table, key, "moved_share"), nothing);
    const bool is_sharp = !std::isnan(none) && none >= 0.0999 * half;
    dead += !std::isnan(half);
    sharp += is_sharp;
    tally.Add(is_sharp ? Answer::kYes : std::isnan(half) ? Answer::kNo : Answer::kPartly);
    const int m = ParseFormat(panel.key.format).spec.mantissa_bits;
    const double least = 1 / (std::ldexp(1, m + 2) - 1);
    text += fmt::format(
        "\n  {:<10} {:<11}  error > 0.5: {:<9}  norm below half: {:<9}  nothing moves: {:<9}{}",
        panel.key.format,
        panel.key.keys,
        Number(onset),
        Number(half),
        Number(none),
        panel.key.keys == "same"
            ? fmt::format("  cliff predicted {:.3g} .. {:.3g}", least, 2 * least)
            : std::string());
  }
  claim.measured = fmt::format(
      "Of {} panels, the norm of the step falls below half of lr||u|| in {}, and in {} nothing "
      "moves any more at a tenth of that rate (rapidly). Greatest rates of the grid at which |norm "
      "ratio - 1| > 0.5, at which the norm ratio is below 0.5, and at which no parameter of any "
      "seed moves:{}\n"
      "With the same key the update is the parameter before rounding, so the sum is (1 + lr) "
      "params except for the first rounding. A parameter moves once lr |u| exceeds half a gap. "
      "Because |u| and the gap depend on each other, with m mantissa bits every normal number has "
      "its threshold between 1/(2^(m+2) - 1) and 2/(2^(m+2) - 1): a single cliff, a factor of 2 "
      "wide, which results from the choice of the key. Independent keys pair small parameters, "
      "which have small gaps, with updates of any size, and the step fades over decades.",
      tally.Cases(),
      dead,
      sharp,
      text);
  claim.verdict = tally.Verdict();
  return claim;
}

// Fits the slope of log10(norm ratio) over log10(lr) where the norm ratio is at least 3 and at
// least 100 parameters moved; standard errors follow from the number of parameters that moved.
// Returns nothing with fewer than 3 such rows or only one learning rate.
std::optional<LineFit> FitStochasticNorm(const Table& table, const Panelful& panel) {
  const double decade = Log(10);
  std::vector<double> x, y, errors;
  for (const size_t i : panel.rows) {
    const double ratio = table.Number(i, "norm_ratio");
    const double moved = table.Number(i, "moved_share") * table.Number(i, "elements");
    if (!(ratio >= 3 && moved >= 100) || std::isinf(ratio)) continue;
    x.push_back(Log(table.Number(i, "lr")) / decade);
    y.push_back(Log(ratio) / decade);
    errors.push_back(0.5 / std::sqrt(moved) / decade);
  }
  const auto differs = [&](double value) { return value != x.front(); };
  if (x.size() < 3 || std::none_of(x.begin(), x.end(), differs)) return std::nullopt;
  return FitLine(x, y, errors);
}

std::string StochasticLine(const Table& table, const Panelful& panel, const LineFit& fit) {
  const CurveKey& key = panel.key;
  const Curve expected = CurveOf(table, key, "expected_mean_ratio");
  const auto biased = [](double ratio) { return std::abs(ratio - 1) > 0.01; };
  const auto twice = [](double ratio) { return ratio > 2; };
  return fmt::format(
      "\n  {}  slope {:.4f} ({:.4f} .. {:.4f})  norm ratio > 2: {:<9}  expected mean "
      "ratio at lr {:.3g}: {:.4f}, off by > 1 %: {}",
      PanelText(panel),
      fit.slope.value,
      fit.slope.low,
      fit.slope.high,
      Number(GreatestRate(CurveOf(table, key, "norm_ratio"), twice)),
      expected.lr.front(),
      expected.mean.front(),
      Number(GreatestRate(expected, biased)));
}

Claim StochasticClaim(const Table& table) {
  Claim claim;
  claim.claim =
      "Stochastic rounding works for longer, but eventually the magnitudes stop aligning and the "
      "error rate rises (Empirics, Precision: \"Stochastic Rounding\").";
  Tally rising;
  std::string text;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kStochastic)) {
    const std::optional<LineFit> fit = FitStochasticNorm(table, panel);
    if (!fit) continue;
    rising.Add(IsNear(fit->slope, -0.5, 0.02));
    text += StochasticLine(table, panel, *fit);
  }
  claim.measured = fmt::format(
      "Each element takes the wanted step in expectation, but with variance: if a step lr|u| is "
      "far below the gap, a whole gap is taken with probability lr|u|/gap, so ||step||/(lr||u||) "
      "must grow like lr^-1/2. Fitted slopes of log norm ratio over log lr where the ratio is >= 3 "
      "and >= 100 parameters moved, with 95 % intervals (criterion: the whole interval within 0.02 "
      "of -0.5 in every panel); greatest rate with a norm ratio above 2; and the expectation of the mean ratio over "
      "the random bits, which deviates from 1 only where lr|u|/gap approaches the resolution 2^-N "
      "of the probabilities with N random bits (variant A truncates toward the smaller magnitude: "
      "a step away from zero loses, a step toward zero gains a whole 2^-N however small u is, "
      "hence a mean ratio above 1 with independent keys):{}\nThe mean ratio measured with one seed "
      "is noise once few parameters move; the column expected_mean_ratio has no noise.",
      text.empty() ? " no panel had 3 such learning rates." : text);
  claim.verdict = rising.Verdict();
  claim.basis = rising.UndecidedText();
  return claim;
}

Claim WorkedExampleClaim() {
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  const uint32_t code = Encode(format, 0.75f);
  const float next = Decode(format, code + 1);
  const float rounded = Decode(format, Encode(format, 0.75f + 0.03f));
  Claim claim;
  claim.claim =
      "round(0.75 + 0.03) = 0.75 in E4M3, where the next value is 0.8125 (The Quantization "
      "Barrier).";
  claim.measured = fmt::format(
      "0.75 + 0.03 rounds to {}; the next value is {}, the midpoint {}, so the update vanishes.",
      rounded,
      next,
      (0.75f + next) / 2);
  claim.verdict = Verdict(true, rounded == 0.75f && next == 0.8125f, false);
  return claim;
}

// Returns a note on the rules that are left out for some of the formats; "" if there are none.
std::string LeftOut(const Settings& settings) {
  std::string text;
  for (const UpdateRule& rule : Rules(settings)) {
    for (const Format& format : ParseFormatList(settings.Get("formats"))) {
      if (Serves(rule, format)) continue;
      text += fmt::format("{} {} in {}", text.empty() ? "" : ",", ToString(rule), format.name);
    }
  }
  return text.empty() ? ""
                      : fmt::format("Left out, as the rule does not serve the format:{}.\n", text);
}

}  // namespace

std::vector<Panelful> PanelsOf(const Table& table, UpdateKind kind) {
  std::vector<Panelful> panels;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const CurveKey key{table.Text(i, "format"), table.Text(i, "keys"), table.Text(i, "rule")};
    if (ParseUpdateRule(key.rule).kind != kind) continue;
    const auto is_of = [&](const Panelful& panel) {
      return panel.key.format == key.format && panel.key.keys == key.keys &&
             panel.key.rule == key.rule;
    };
    auto panel = std::find_if(panels.begin(), panels.end(), is_of);
    if (panel == panels.end()) panel = panels.insert(panel, {key, {}});
    panel->rows.push_back(i);
  }
  return panels;
}

std::string PanelText(const Panelful& panel) {
  const bool plain = panel.key.rule == ToString(ParseUpdateRule(panel.key.rule).kind);
  return fmt::format("{:<10} {:<11}{}",
                     panel.key.format,
                     panel.key.keys,
                     plain ? std::string() : " " + panel.key.rule);
}

std::string Verdict(bool measured, bool all, bool any) {
  if (!measured) return std::string(kNotMeasured);
  return std::string(all ? kHolds : any ? kHoldsInPart : kDoesNotHold);
}

std::string Number(double x) { return std::isnan(x) ? "none" : fmt::format("{:.3g}", x); }

double MeanAt(const Curve& curve, double lr) {
  const auto found = std::find(curve.lr.begin(), curve.lr.end(), lr);
  return found == curve.lr.end() ? std::numeric_limits<double>::quiet_NaN()
                                 : curve.mean[static_cast<size_t>(found - curve.lr.begin())];
}

double ClosestRate(const Table& table, double lr) {
  const auto distance = [&](double rate) { return std::abs(Log(rate / lr)); };
  double closest = table.Number(0, "lr");
  for (size_t i = 1; i < table.rows.size(); ++i) {
    const double rate = table.Number(i, "lr");
    if (distance(rate) < distance(closest)) closest = rate;
  }
  return closest;
}

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Table& table = tables.at(std::string(kTable));
  Summary summary;
  const Table& cliffs = tables.at(std::string(kCliffs));
  const double rtol = settings.GetDouble("rtol", 0, 1);
  summary.claims = {SmallRatesClaim(table, rtol),
                    TargetClaim(table, rtol),
                    NaiveClaim(table),
                    StochasticClaim(table),
                    WorkedExampleClaim(),
                    CliffClaim(cliffs),
                    NaiveDeclineClaim(cliffs),
                    NormMatchedClaim(table),
                    CosineClaim(table),
                    ProjectionMatchedClaim(table),
                    StateClaim(table)};
  summary.notes = fmt::format(
      "Seeds: {}. With one seed, only differences far larger than another seed could cause are "
      "results; run --seeds 5 for bands.\n"
      "{}"
      "How naive rounding stops: see the claim about it and cliffs.csv. A weight moves once lr |u| "
      "exceeds the distance h to its rounding boundary. Of n weights from the distribution, lr is "
      "expected to move n times the sum of P(Q(x) = w) P(|u| > h(w)/lr) over the values w of the "
      "format; half of the norm is gone where the expected square of the step, a similar sum over "
      "all boundaries that a step may pass, is lr^2/4 per weight. The sums go over every value of "
      "the format, with the normal distribution in closed form.\n"
      "Where the source says nothing: its stochastic_update is not defined; here the exact sum is "
      "rounded once, under variant A, with 32 random bits unless the rule says otherwise. Its "
      "metrics compare norm(update) with the norm of the new parameters and divide params - new by "
      "the update; here the step new - params is compared with lr u throughout. Its sums are "
      "float32 in an order that JAX leaves open; here they are float64 in fixed blocks. Its random "
      "numbers come from JAX's generator; here from Philox.",
      settings.seeds,
      LeftOut(settings));
  return summary;
}

}  // namespace numsim::experiments::update_fidelity
