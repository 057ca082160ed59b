// The summary of `update-convergence`: verdicts on the claims of [Seed003] and of the analysis of
// its method, from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "experiments/core/frame.h"
#include "experiments/core/verdict.h"
#include "experiments/shared/training.h"
#include "experiments/update_convergence/outcomes.h"
#include "experiments/update_convergence/update_convergence.h"
#include "numsim/base/error.h"

namespace numsim::experiments::update_convergence {
namespace {

// Thresholds for "much longer" (of the delay) and "more slowly" (of the travel).
constexpr double kDelayed = 1.5;
constexpr double kSlow = 0.9;

// Returns a table of the counts by format and learning rate, as text.
std::string CountTable(const Outcomes& in, const std::string& rule, const Holds& holds) {
  std::string text = fmt::format("\n  {:<10}", "lr");
  for (const std::string& rate : in.rates) text += fmt::format(" {:>8}", rate);
  for (const std::string& format : in.formats) {
    text += fmt::format("\n  {:<10}", format);
    for (const std::string& rate : in.rates) {
      text += fmt::format(" {:>8}", CountRows(in, rule, holds, format, rate).Text());
    }
  }
  return text;
}

// Returns minimum, maximum and median of a column over all configurations, as text.
std::string RangeText(const Outcomes& in,
                      const std::string& rule,
                      const char* column,
                      double unit = 1) {
  std::vector<double> values;
  for (const Configuration& c : in.configurations) {
    const size_t* const row = in.Row(c, rule);
    if (row != nullptr && !std::isnan(in.Number(*row, column))) {
      values.push_back(unit * in.Number(*row, column));
    }
  }
  if (values.empty()) return "not known";
  std::sort(values.begin(), values.end());
  return fmt::format(
      "{:.3g} .. {:.3g} (median {:.3g})", values.front(), values.back(), values[values.size() / 2]);
}

std::string ScaleText(const Settings& settings) {
  const std::string scale = TrainingScaleText(settings);
  return fmt::format("{}{}{} seed{}",
                     scale,
                     scale.empty() ? "" : ", ",
                     settings.seeds,
                     settings.seeds == 1 ? "" : "s");
}

Estimate EstimateAt(const Outcomes& in, size_t r, const std::string& column) {
  return {in.Number(r, column.c_str()),
          in.Number(r, (column + "_low").c_str()),
          in.Number(r, (column + "_high").c_str())};
}

// Returns whether the training in row `r` falls behind, by the intervals over seeds of its gap and
// of the growth of its gap. A training that ended early is undecided.
Answer FallsBehind(const Outcomes& in, size_t r) {
  const std::string verdict = in.final_table.Text(r, "falls_behind");
  const Estimate gap = EstimateAt(in, r, "gap"), growth = EstimateAt(in, r, "gap_growth");
  if (verdict == "ended" || std::isnan(gap.low) || std::isnan(growth.low)) {
    return Answer::kUndecided;
  }
  if (verdict == "yes") return Answer::kYes;
  const bool small = gap.high <= kWithin || growth.high <= kGrowth;
  return small || growth.value <= kGrowth || gap.value <= kWithin ? Answer::kNo
                                                                  : Answer::kUndecided;
}

std::string BasisOf(const Outcomes& in, const Tally& tally) {
  std::string text = ScaleText(in.settings);
  if (tally.Undecided() == 0) return text;
  return text + fmt::format("; {}: {}",
                            tally.UndecidedText(),
                            in.settings.seeds < 2
                                ? "one seed gives no interval; use --seeds 3"
                                : "they ended early, or their interval contains both answers");
}

Claim BehindClaim(const Outcomes& in, UpdateKind kind, const char* target) {
  const std::string rule(ToString(kind));
  Claim claim;
  claim.claim = fmt::format(
      "As training continues the low precision version falls further and further behind "
      "(Conclusion). Target: {}.",
      target);
  const Holds behind = [&](size_t r) { return in.final_table.Text(r, "falls_behind") == "yes"; };
  const Holds ended = [&](size_t r) { return in.final_table.Text(r, "falls_behind") == "ended"; };
  const Count count = CountRows(in, rule, behind);
  const Tally tally = TallyRows(in, rule, [&](size_t r) { return FallsBehind(in, r); });
  claim.verdict = tally.Verdict();
  claim.basis = BasisOf(in, tally);
  if (count.all == 0) {
    claim.measured = "There is no run with " + rule + ".";
    return claim;
  }
  claim.measured = fmt::format(
      "{} falls behind in {} of {} trainings (below by format and learning rate, over problems and "
      "optimisers; {} ended early). Criterion: a gap to fp32 above {:g} % of its progress at the "
      "end, which grew by more than {:g} % since half-time{}. Gap at the end in %: {}; travel "
      "along fp32's path: {}.{}",
      rule,
      count.yes,
      count.all,
      CountRows(in, rule, ended).yes,
      100 * kWithin,
      100 * kGrowth,
      in.settings.seeds > 1 ? ", with a 95 % interval over seeds above 0" : " (one seed)",
      RangeText(in, rule, "gap", 100),
      RangeText(in, rule, "travel"),
      CountTable(in, rule, behind));
  return claim;
}

Claim SlowClaim(const Outcomes& in) {
  Claim claim;
  claim.claim =
      "It takes much longer to converge and the weights move more slowly overall (Pretraining).";
  const Holds slow = [&](size_t r) {
    return in.Number(r, "delay") > kDelayed && in.Number(r, "travel") < kSlow;
  };
  const auto answer = [&](size_t r) {
    const bool known = !std::isnan(in.Number(r, "delay") + in.Number(r, "travel"));
    return known ? AnswerOf(slow(r)) : Answer::kUndecided;
  };
  Tally tally;
  Count matched;
  for (const UpdateKind kind : {UpdateKind::kNormMatched, UpdateKind::kNoteAsPrinted}) {
    const std::string rule(ToString(kind));
    const Count count = CountRows(in, rule, slow);
    if (count.all == 0) continue;
    matched.all += count.all;
    tally.Add(TallyRows(in, rule, answer));
    claim.measured += fmt::format(
        "{}{}: {} of {}; travel at the end {}.{}",
        claim.measured.empty()
            ? fmt::format("Trainings that take more than {:g} times as many steps as fp32 to half "
                          "of its progress, or never get there, and travel less than {:g} of "
                          "its distance along its path. ",
                          kDelayed,
                          kSlow)
            : "\n",
        rule,
        count.yes,
        count.all,
        RangeText(in, rule, "travel"),
        CountTable(in, rule, slow));
  }
  if (matched.all == 0) claim.measured = "Neither norm-matched nor note-as-printed was run.";
  claim.verdict = tally.Verdict();
  claim.basis = BasisOf(in, tally);
  return claim;
}

bool Close(double ratio) { return std::abs(ratio - 1) <= kRatio; }

// Returns true if any rule of the configuration with state, or without state, takes steps of the
// requested norm and of the requested projection.
bool HasBoth(const Outcomes& in, const Configuration& c, bool with_state) {
  const FormatSpec format = ParseFormat(c.format).spec;
  return std::any_of(c.rows.begin(), c.rows.end(), [&](const auto& rule_and_row) {
    const UpdateRule rule = ParseUpdateRule(rule_and_row.first);
    if ((StateBytesPerWeight(rule, format) > 0) != with_state) return false;
    return Close(in.Number(rule_and_row.second, "norm_ratio")) &&
           Close(in.Number(rule_and_row.second, "projection_ratio"));
  });
}

Claim BothClaim(const Outcomes& in) {
  Count without, with;
  size_t naive = 0;
  for (const Configuration& c : in.configurations) {
    if (!in.Loses(c)) continue;
    ++naive;
    ++without.all;
    ++with.all;
    without.yes += HasBoth(in, c, false) ? 0 : 1;
    with.yes += HasBoth(in, c, true) ? 0 : 1;
  }
  Claim claim;
  claim.claim =
      "No method without extra state can take steps of both the requested norm and the requested "
      "projection (analysis of [Seed003]).";
  claim.measured =
      naive == 0
          ? "Rounding to nearest loses no part of the step."
          : fmt::format(
                "In {} trainings rounding to nearest loses part of the step (projection of naive "
                "off by more than {:g} %). In {} of them no rule without state has both ratios, "
                "as means over the run, within {:g} % of 1; in {} no rule with state does. A "
                "master or a compensation corrects the path, not the single step of the stored "
                "weights.",
                naive,
                100 * kRatio,
                without.yes,
                100 * kRatio,
                with.yes);
  claim.verdict = Verdict(without);
  claim.basis = ScaleText(in.settings);
  return claim;
}

Claim ProjectionClaim(const Outcomes& in) {
  const UpdateKind projection = UpdateKind::kProjectionMatched, norm = UpdateKind::kNormMatched;
  const Count count = Beats(in, projection, norm);
  return {
      "Norm matching is the wrong invariant, projection matching is much better (analysis of "
      "[Seed003]).",
      count.all == 0
          ? "One of the rules was not run, or rounding to nearest loses no part of the step."
          : fmt::format("Where rounding to nearest loses part of the step, the gap of {} at the "
                        "end is smaller than that of {} by more than {:g} % of fp32's progress "
                        "in {} of {} trainings, larger in {}.",
                        ToString(projection),
                        ToString(norm),
                        100 * kGrowth,
                        count.yes,
                        count.all,
                        Beats(in, norm, projection).yes),
      Verdict(count),
      ScaleText(in.settings)};
}

Claim BeatClaim(const Outcomes& in) {
  Claim claim;
  claim.claim =
      "Stochastic rounding and Kahan's compensation beat both; projection matching converges more "
      "slowly on long runs (analysis of [Seed003]).";
  Count total;
  std::string lines = fmt::format("\n  {:<32}", "");
  for (const std::string& format : in.formats) lines += fmt::format(" {:>8}", format);
  for (const UpdateKind a : {UpdateKind::kStochastic, UpdateKind::kKahan}) {
    for (const UpdateKind b : {UpdateKind::kNormMatched, UpdateKind::kProjectionMatched}) {
      const Count count = Beats(in, a, b);
      total.yes += count.yes;
      total.all += count.all;
      lines += fmt::format("\n  {:<32}", fmt::format("{} < {}", ToString(a), ToString(b)));
      for (const std::string& format : in.formats) {
        lines += fmt::format(" {:>8}", Beats(in, a, b, format).Text());
      }
    }
  }
  claim.measured =
      total.all == 0
          ? "No two of the rules were run, or rounding to nearest loses no part of the step."
          : fmt::format(
                "Where rounding to nearest loses part of the step, the gap at the end is smaller "
                "by more than {:g} % of fp32's progress in {} of {} comparisons. kahan keeps its "
                "compensation in the format of the weights unless --rules names another "
                "(kahan:bf16); in a format with few bits the compensation is rounded away like "
                "the step.{}",
                100 * kGrowth,
                total.yes,
                total.all,
                lines);
  claim.verdict = Verdict(total);
  claim.basis = ScaleText(in.settings);
  return claim;
}

std::string ChoiceText(const std::string& rule, double bytes) {
  return rule == "none" ? rule : fmt::format("{} {:g}", rule, bytes);
}

// Returns the cheapest rules as text, with one line per problem, optimiser and format.
std::string CheapestText(const Outcomes& in, const char* rule, const char* bytes) {
  const Table& table = in.cheapest;
  std::string text = fmt::format("\n  {:<9} {:<9} {:<8}", "lr", "", "");
  for (const std::string& rate : in.rates) text += fmt::format(" {:<22}", rate);
  for (const std::string& problem : Frame(table).Distinct("problem")) {
    for (const std::string& optimiser : Frame(table).Distinct("optimiser")) {
      for (const std::string& format : in.formats) {
        text += fmt::format("\n  {:<9} {:<9} {:<8}", problem, optimiser, format);
        for (size_t r = 0; r < table.rows.size(); ++r) {
          if (table.Text(r, "problem") != problem || table.Text(r, "optimiser") != optimiser ||
              table.Text(r, "format") != format) {
            continue;
          }
          text += fmt::format(" {:<22}", ChoiceText(table.Text(r, rule), table.Number(r, bytes)));
        }
      }
    }
  }
  return text;
}

// Returns the rules of --rules that were left out for some formats, as text.
std::string LeftOut(const Settings& settings) {
  std::string text;
  for (const Format& format : Formats(settings)) {
    const std::vector<UpdateRule> used = RulesFor(settings, format);
    for (const UpdateRule& rule : ParseUpdateRuleList(settings.Get("rules"))) {
      const bool there = std::any_of(used.begin(), used.end(), [&](const UpdateRule& u) {
        return ToString(u) == ToString(rule);
      });
      if (!there) {
        text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", ToString(rule), format.name);
      }
    }
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Outcomes in = OutcomesOf(settings, tables);
  Summary summary;
  summary.claims = {
      BehindClaim(in, UpdateKind::kNoteAsPrinted, "as printed, lr ||u||^2 against ||step||^2"),
      BehindClaim(in, UpdateKind::kNormMatched, "the norm, ||step|| = lr ||u||"),
      BehindClaim(in, UpdateKind::kProjectionMatched, "the projection, <step, u> = lr ||u||^2"),
      SlowClaim(in),
      BothClaim(in),
      ProjectionClaim(in),
      BeatClaim(in)};
  summary.notes = fmt::format(
      "The cheapest rule that stays within {:g} % of fp32 at half-time and at the end, with its "
      "bytes per weight (fp32 itself: 4; a rule of 4 or more saves no memory, but the weights that "
      "a GEMM reads are small), the first of --rules among equals. note-as-printed is no "
      "candidate: its target makes it train at the learning rate sqrt(lr), which may be better "
      "or worse than lr but is another training.{}\n\n"
      "The cheapest rule within {:g} % of master-fp32 in the same format, whose weights are as "
      "good as that format can hold:{}\n\n"
      "Rules left out because they do not serve the format or are the same as kahan: {}. "
      "Configurations in which fp32 makes no progress, so that nothing is compared: {}.",
      100 * kWithin,
      CheapestText(in, "rule", "bytes"),
      100 * kWithin,
      CheapestText(in, "rule_master", "bytes_master"),
      LeftOut(settings),
      in.without_progress);
  return summary;
}

}  // namespace numsim::experiments::update_convergence
