// The claims of `update-fidelity` beyond the note: where naive rounding stops, what a search for
// the right target achieves, and what rules with state lose.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "experiments/update_fidelity/summary.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::update_fidelity {
namespace {

// Returns true if the rate is within half a decade of the range, which counts as "about".
bool IsAbout(double rate, double low, double high) {
  const double room = std::sqrt(10.0);
  return rate >= low / room && rate <= high * room;
}

// Returns the rates of the table at which values are printed, in descending order.
std::vector<double> PrintedRates(const Table& table) {
  std::vector<double> rates;
  if (table.rows.empty()) return rates;
  for (const double wanted : {1e-2, 1e-4, 1e-6, 1e-8}) {
    const double lr = ClosestRate(table, wanted);
    if (rates.empty() || lr != rates.back()) rates.push_back(lr);
  }
  return rates;
}

std::string RatesText(const Table& table) {
  std::string text;
  for (const double lr : PrintedRates(table)) text += (text.empty() ? "" : ", ") + Number(lr);
  return text;
}

// Returns the means of the curve at the printed rates, as text.
std::string AtRates(const Table& table, const Curve& curve) {
  std::string text;
  for (const double lr : PrintedRates(table)) {
    text += fmt::format("{}{:<8}", text.empty() ? "" : " ", Number(MeanAt(curve, lr)));
  }
  return text;
}

// Returns the greatest rate at which any seed has that status; NaN if there is none.
double GreatestWithStatus(const Table& table, const Panelful& panel, UpdateStatus status) {
  double greatest = 0;
  for (const size_t i : panel.rows) {
    if (table.Text(i, "status") == ToString(status)) {
      greatest = std::max(greatest, table.Number(i, "lr"));
    }
  }
  return greatest > 0 ? greatest : std::numeric_limits<double>::quiet_NaN();
}

// Gets the range of the smallest rate of norm matching according to the analysis of the note.
// Returns false if the analysis says nothing about the format and keys.
bool ClaimedFloor(const CurveKey& key, double& low, double& high) {
  if (key.format == "e4m3fn") {
    low = key.keys == "same" ? 1e-4 : 1e-6;
    high = key.keys == "same" ? 1e-4 : 1e-5;
    return true;
  }
  low = 1e-10;
  high = 1e-9;
  return key.keys == "independent" && (key.format == "fp16" || key.format == "bf16");
}

// The minimum and maximum of the numbers added; NaN is left out.
struct Range {
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();

  void Add(double x) {
    if (!(x >= low)) low = std::isnan(x) ? low : x;
    if (!(x <= high)) high = std::isnan(x) ? high : x;
  }
  std::string Text() const {
    const std::string from = fmt::format("{:.4g}", low), to = fmt::format("{:.4g}", high);
    return from == to ? from : from + " .. " + to;
  }
};

// The rows of cliffs.csv that differ only in the seed, combined into one line.
struct CliffLine {
  Range measured, predicted, movers;
};

std::string CliffText(const Table& cliffs) {
  std::vector<std::string> labels;  // in the order of the table
  std::map<std::string, CliffLine> lines;
  for (size_t i = 0; i < cliffs.rows.size(); ++i) {
    const std::string label = fmt::format("{:<10} {:<11}  {:<9} from {:<12}",
                                          cliffs.Text(i, "format"),
                                          cliffs.Text(i, "keys"),
                                          cliffs.Text(i, "limit"),
                                          cliffs.Text(i, "predicted_from"));
    if (lines.count(label) == 0) labels.push_back(label);
    CliffLine& line = lines[label];
    line.measured.Add(cliffs.Number(i, "measured"));
    line.predicted.Add(cliffs.Number(i, "predicted"));
    line.movers.Add(cliffs.Number(i, "expected_movers"));
  }
  std::string text;
  for (const std::string& label : labels) {
    const CliffLine& line = lines.at(label);
    text += fmt::format("\n  {}  measured {:<24}  predicted {:<24}",
                        label,
                        line.measured.Text(),
                        line.predicted.Text());
    if (!std::isnan(line.movers.low)) text += "  movers expected " + line.movers.Text();
  }
  return text;
}

}  // namespace

Claim CliffClaim(const Table& cliffs) {
  Claim claim;
  claim.claim =
      "The rate at which naive addition stops follows from format and distribution: in given "
      "arrays nothing moves below min h/|u|, where h is the distance to the rounding boundary; in "
      "random arrays, below the rate at which one mover is expected.";
  size_t rows = 0, right = 0, strict = 0;
  Tally tally;
  for (size_t i = 0; i < cliffs.rows.size(); ++i) {
    const double measured = cliffs.Number(i, "measured"), predicted = cliffs.Number(i, "predicted");
    const double movers = cliffs.Number(i, "expected_movers");
    const double off = std::abs(measured / predicted - 1);
    const int m = ParseFormat(cliffs.Text(i, "format")).spec.mantissa_bits;
    const bool rounded = off <= std::ldexp(1.0, m - 21);
    const bool half_norm = cliffs.Text(i, "limit") == "half-norm" && off <= 0.05;
    const bool likely = movers >= 1e-3 && movers <= 10;
    const bool close = rounded || half_norm || likely;
    strict += cliffs.Text(i, "predicted_from") == "arrays" ? rounded : half_norm || likely;
    ++rows;
    right += close;
    tally.Add(std::isnan(measured) || std::isnan(predicted) ? Answer::kUndecided : AnswerOf(close));
  }
  claim.measured = fmt::format(
      "{} of {} predictions hold. Criteria: from the arrays, to a factor within 1 +- 2^(m-21) with "
      "m mantissa bits (rounding of the float32 sum); half-norm, the rate below which half of the "
      "step's norm is gone, to 5 %; unmoved from the distribution, which is a minimum and so "
      "random: 0.001 to 10 movers are expected at the measured rate, or the rates agree up to the "
      "rounding of the float32 sum, which alone decides at the edge of the same key's cliff ({} of "
      "{} without that allowance). Ranges over the seeds:{}",
      right,
      rows,
      strict,
      rows,
      CliffText(cliffs));
  claim.verdict = tally.Verdict();
  claim.basis = tally.UndecidedText();
  return claim;
}

Claim NaiveDeclineClaim(const Table& cliffs) {
  Claim claim;
  claim.claim =
      "With independent keys naive addition declines below a learning rate of about 0.01 in E4M3, "
      "1e-3 in bf16 and 1e-4 in fp16 (analysis of the note).";
  Tally tally;
  std::map<std::string, Range> ranges;
  for (size_t i = 0; i < cliffs.rows.size(); ++i) {
    const std::string& format = cliffs.Text(i, "format");
    const double said = format == "e4m3fn" ? 1e-2 : format == "bf16" ? 1e-3 : 1e-4;
    if (cliffs.Text(i, "limit") != "half-norm" || cliffs.Text(i, "keys") != "independent") continue;
    if (format != "e4m3fn" && format != "bf16" && format != "fp16") continue;
    const double measured = cliffs.Number(i, "measured");
    tally.Add(std::isnan(measured) ? Answer::kUndecided : AnswerOf(IsAbout(measured, said, said)));
    ranges[format].Add(measured);
  }
  std::string text;
  for (const auto& [format, range] : ranges) {
    text += fmt::format("{} {} {}", text.empty() ? "" : ";", format, range.Text());
  }
  claim.measured =
      fmt::format("Half of the norm is gone below{} (criterion: within half a decade).",
                  text.empty() ? " no rate" : text);
  claim.verdict = tally.Verdict();
  claim.basis = tally.UndecidedText();
  return claim;
}

Claim NormMatchedClaim(const Table& table) {
  Claim claim;
  claim.claim =
      "A search for a step of norm lr||u|| is exact down to the smallest possible step: about 1e-5 "
      "to 1e-6 in E4M3, 1e-9 to 1e-10 in fp16 and bf16, with independent keys; with the same key "
      "it fails below about 1e-4 in E4M3 (analysis of the note).";
  size_t compared = 0, right = 0;
  std::string text;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kNormMatched)) {
    const auto floor_to = [&](double error) {
      return LeastRate(
          table, panel, [&](size_t i) { return table.Number(i, "norm_error") <= error; });
    };
    double low = 0, high = 0;
    if (ClaimedFloor(panel.key, low, high)) {
      ++compared;
      right += IsAbout(floor_to(0.01), low, high);
    }
    text += fmt::format(
        "\n  {}  norm to 1 % for lr >= {:<9}  to 10 %: {:<9}  below-min-step from {:<9}  cosine {}",
        PanelText(panel),
        Number(floor_to(0.01)),
        Number(floor_to(0.1)),
        Number(GreatestWithStatus(table, panel, UpdateStatus::kBelowMinStep)),
        AtRates(table, CurveOf(table, panel.key, "cosine")));
  }
  claim.measured = fmt::format(
      "{} of {} floors, to 1 %, lie within half a decade of the claim (criterion). Smallest rates "
      "of the grid down to which the norm of every seed is right to 1 % and to 10 %, greatest rate "
      "at which the target is below the smallest step that alpha reaches, and the cosine of the "
      "step with u at lr {}:{}",
      right,
      compared,
      RatesText(table),
      text);
  claim.verdict = Verdict(compared > 0, right == compared, right > 0);
  return claim;
}

Claim CosineClaim(const Table& table) {
  Claim claim;
  claim.claim =
      "Matching the norm moves the share p of parameters with the largest |u|/gap by one gap each, "
      "so the step's cosine with u is about sqrt(p) mean|u of those|/rms(u) (analysis of the "
      "note).";
  size_t rows = 0, right = 0;
  std::string text;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kNormMatched)) {
    double low = std::numeric_limits<double>::infinity(), high = 0;
    for (const size_t i : panel.rows) {
      const double share = table.Number(i, "moved_share");
      if (share > 0.1 || share * table.Number(i, "elements") < 100) continue;
      const double ratio =
          table.Number(i, "cosine") / (std::sqrt(share) * table.Number(i, "moved_update"));
      ++rows;
      right += ratio >= 0.8 && ratio <= 1.25;
      low = std::min(low, ratio);
      high = std::max(high, ratio);
    }
    if (high > 0) {
      text += fmt::format("\n  {}  {} .. {}", PanelText(panel), Number(low), Number(high));
    }
  }
  claim.measured = fmt::format(
      "In {} of {} steps that moved at least 100 parameters and at most a tenth of all, the cosine "
      "is within 25 % of the formula (criterion). Minimum and maximum of cosine over formula, "
      "which exceeds 1 where gaps grow with |u| among the parameters that move, as with the same "
      "key:{}",
      right,
      rows,
      text);
  claim.verdict = Verdict(rows > 0, right == rows, 2 * right > rows);
  return claim;
}

namespace {

// Compares a panel of the projection's claim with the stochastic rule in the same panel. Counts the
// rates at which the projection is met, and those of them with less noise than the stochastic rule.
struct Noise {
  size_t rates = 0, less = 0;            // all such rates
  size_t settled = 0, settled_less = 0;  // those where the stochastic rule moves >= 100 parameters
};
void CompareNoise(const Table& table,
                  const Panelful& panel,
                  const CurveKey& stochastic,
                  Noise& noise) {
  const Curve norm = CurveOf(table, panel.key, "norm_ratio");
  const Curve projection = CurveOf(table, panel.key, "projection_ratio");
  const Curve other_norm = CurveOf(table, stochastic, "norm_ratio");
  const Curve share = CurveOf(table, stochastic, "moved_share");
  const double elements = table.Number(panel.rows.front(), "elements");
  for (size_t i = 0; i < norm.lr.size(); ++i) {
    const double other = MeanAt(other_norm, norm.lr[i]);
    if (!(std::abs(projection.mean[i] - 1) <= 0.01) || std::isnan(other)) continue;
    const bool less = norm.mean[i] <= 1.01 * other;
    const bool settled = MeanAt(share, norm.lr[i]) * elements >= 100;
    ++noise.rates;
    noise.less += less;
    noise.settled += settled;
    noise.settled_less += settled && less;
  }
}

}  // namespace

Claim ProjectionMatchedClaim(const Table& table) {
  Claim claim;
  claim.claim =
      "Matching the projection keeps <step, u> = lr||u||^2, with less noise per step than "
      "stochastic rounding, but parameters with a small |u|/gap never move: the mean step is about "
      "half of what was asked for (analysis of the note).";
  Noise all;
  std::string text;
  for (const Panelful& panel : PanelsOf(table, UpdateKind::kProjectionMatched)) {
    const CurveKey stochastic_key{
        panel.key.format, panel.key.keys, std::string(ToString(UpdateKind::kStochastic))};
    const Curve stochastic = CurveOf(table, stochastic_key, "norm_ratio");
    CompareNoise(table, panel, stochastic_key, all);
    const double floor = LeastRate(table, panel, [&](size_t i) {
      return std::abs(table.Number(i, "projection_ratio") - 1) <= 0.01;
    });
    text += fmt::format(
        "\n  {}  to 1 % for lr >= {:<9}  below-min-step from {:<9}"
        "\n    norm ratio  {}\n    stochastic  {}\n    mean ratio  {}",
        PanelText(panel),
        Number(floor),
        Number(GreatestWithStatus(table, panel, UpdateStatus::kBelowMinStep)),
        AtRates(table, CurveOf(table, panel.key, "norm_ratio")),
        AtRates(table, stochastic),
        AtRates(table, CurveOf(table, panel.key, "mean_ratio")));
  }
  claim.measured = fmt::format(
      "At {} of {} rates where the projection is met to 1 %, the norm of the step is at most 1.01 "
      "times that of stochastic rounding (criterion: at all of them); so it is at {} of the {} "
      "where stochastic rounding moves 100 parameters or more, below which its norm is chance. "
      "Smallest rate of the grid down to which every seed meets the projection; ||step||/(lr||u||) "
      "of both rules and mean(step/u)/lr, which the verdict leaves out, at lr {}:{}",
      all.less,
      all.rates,
      all.settled_less,
      all.settled,
      RatesText(table),
      text);
  claim.verdict = Verdict(all.rates > 0, all.less == all.rates, all.less > 0);
  return claim;
}

Claim StateClaim(const Table& table) {
  Claim claim;
  claim.claim =
      "Rules with state lose nothing of the step: the part that the stored parameters do not take "
      "up stays in the state (premise of master weights and of Kahan summation).";
  size_t panels = 0, right = 0, partly = 0, repairs = 0;
  std::string text;
  for (const UpdateKind kind : UpdateKinds()) {
    if (!HasState(kind)) continue;
    for (const Panelful& panel : PanelsOf(table, kind)) {
      const Curve error = CurveOf(table, panel.key, "effective_relative_error");
      const double least = LeastRate(table, panel, [&](size_t i) {
        return table.Number(i, "effective_relative_error") <= 0.01;
      });
      for (const size_t i : panel.rows) {
        repairs +=
            table.Number(i, "moved_share") > 0 && table.Number(i, "effective_norm_ratio") == 0;
      }
      ++panels;
      right += !error.lr.empty() && least == error.lr.front();
      partly += !std::isnan(least);
      const double bytes =
          StateBytesPerWeight(ParseUpdateRule(panel.key.rule), ParseFormat(panel.key.format).spec);
      text += fmt::format("\n  {:<10} {:<11}  {:<18} {} B  lr >= {:<9}  effective {}  stored {}",
                          panel.key.format,
                          panel.key.keys,
                          panel.key.rule,
                          bytes,
                          Number(least),
                          AtRates(table, error),
                          AtRates(table, CurveOf(table, panel.key, "relative_error")));
    }
  }
  claim.measured = fmt::format(
      "Parameters and state together follow lr u to 1 % at every rate (criterion) in {} of {} "
      "panels; the state, too, has a limited resolution. State in bytes per parameter, smallest "
      "rate of the grid down to which that holds, and the relative error at lr {}, of both "
      "together (effective) and of the stored parameters alone:{}",
      right,
      panels,
      RatesText(table),
      text);
  if (repairs > 0) {
    claim.measured += fmt::format(
        "\nIn {} steps stored parameters moved although the effective parameters did not: they "
        "started as the rounded draw and not as the rounded master, and the first step repairs "
        "that.",
        repairs);
  }
  claim.verdict = Verdict(panels > 0, right == panels, partly > 0);
  return claim;
}

}  // namespace numsim::experiments::update_fidelity
