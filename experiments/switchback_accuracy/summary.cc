// The summary of `switchback-accuracy`: verdicts on section 2.2 and appendix D of [SwitchBack],
// from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/core/verdict.h"
#include "experiments/shared/distinct.h"
#include "experiments/shared/training.h"
#include "experiments/switchback_accuracy/comparison.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

// The error of a weight gradient grew if it is larger by more than this factor.
constexpr double kGrown = 1.1;

struct Measured {
  const Settings& settings;
  const Tables& tables;
  const Table& final_table;
  const Table& gaps;
  const Table& errors;
};

// Returns on what a verdict rests: the scale of the trainings, and why cases are undecided.
std::string BasisOf(const Settings& settings, const Tally& tally) {
  const std::string text = TrainingScaleText(settings);
  if (settings.seeds < 2) return text + "; one seed gives no interval; use --seeds 3";
  if (tally.Undecided() == 0) return text;
  return text + fmt::format("; {}: their intervals exclude nothing; use more --seeds or --steps",
                            tally.UndecidedText());
}

// ---- variants against the baseline

std::string GapText(const Table& gaps, size_t r) {
  const auto number = [&](const char* column) { return gaps.Number(r, column); };
  std::string text = fmt::format("{}, {}: ", GroupOf(gaps, r).Text(), VariantOf(gaps, r).Text());
  if (number("diverged") > 0) {
    return text +
           fmt::format("{} of {} seeds diverged", gaps.Text(r, "diverged"), gaps.Text(r, "seeds"));
  }
  text += IntervalText({number("gap"), number("gap_low"), number("gap_high")});
  const double share = number("gap_share");  // not finite if the baseline diverged
  if (std::isfinite(share)) text += fmt::format(", {:.2f} %", 100 * share);
  if (!std::isnan(number("zero_shot_gap_low"))) {
    text += fmt::format(", accuracy {:+.2f} [{:+.2f}, {:+.2f}] percentage points",
                        100 * number("zero_shot_gap"),
                        100 * number("zero_shot_gap_low"),
                        100 * number("zero_shot_gap_high"));
  }
  return text;
}

// Returns whether a row of gaps.csv is as good as standard: the interval of its gap contains 0 or is
// below it, and excludes a gap that contradicts that.
Answer WithinNoise(const Measured& in, size_t r) {
  const std::string& verdict = in.gaps.Text(r, "verdict");
  if (verdict == kNoVerdict) return Answer::kUndecided;
  if (verdict != kWithinNoise) return Answer::kNo;
  const Estimate gap{
      in.gaps.Number(r, "gap"), in.gaps.Number(r, "gap_low"), in.gaps.Number(r, "gap_high")};
  return IsBelow(gap, kContradicts * GainedBy(in.tables, GroupOf(in.gaps, r)));
}

// The rows of gaps.csv of a kind in a precision, and the number of rows with each verdict.
struct Gaps {
  std::string list;
  Tally within;    // is the gap 0, or below?
  Tally diverged;  // did a seed diverge? kPartly: none did, but the variant fell behind
};

Gaps GapsOf(const Measured& in, std::string_view kind, std::string_view precision) {
  Gaps found;
  for (size_t r = 0; r < in.gaps.rows.size(); ++r) {
    const Variant variant = VariantOf(in.gaps, r);
    if (variant.kind != kind || Precision(variant) != precision) continue;
    const std::string& verdict = in.gaps.Text(r, "verdict");
    found.list += "\n  " + GapText(in.gaps, r) + ": " + verdict;
    const Answer within = WithinNoise(in, r);
    if (within == Answer::kUndecided && verdict != kNoVerdict) found.list += ", undecided";
    if (verdict == kNoVerdict) continue;
    found.within.Add(within);
    found.diverged.Add(verdict == kDiverged ? Answer::kYes
                       : verdict == kBehind ? Answer::kPartly
                                            : Answer::kNo);
  }
  return found;
}

Claim MatchClaim(const Measured& in, std::string_view precision) {
  const Gaps gaps = GapsOf(in, "switchback", precision);
  return {
      fmt::format(
          "{} SwitchBack matches 16 bits: \"a negligible accuracy drop of 0.1 percentage points "
          "compared to the bfloat16 baseline for CLIP ViT-Huge\" (Section 2.2.3, Figure 1).",
          precision),
      fmt::format(
          "{} of {} within noise at {}: the 95 % interval of the gap, paired by seed, "
          "contains 0 or is below it, and excludes {:g} % of what standard gained; nine of "
          "ten suffice. A gap smaller than the interval is not detected. Gaps in nats, then "
          "as a share of what standard gained.{}",
          gaps.within.Yes(),
          gaps.within.Cases(),
          TrainingScaleText(in.settings),
          100 * kContradicts,
          gaps.list),
      gaps.within.VerdictOfMost(),
      BasisOf(in.settings, gaps.within)};
}

Claim TensorWiseClaim(const Measured& in) {
  const Gaps gaps = GapsOf(in, "tensor-wise", "fp8");
  return {
      "In fp8 \"training diverges for the baseline that uses tensor-wise quantization for all "
      "matrices\" (Section 2.2.3, Figure 1; CLIP above 420 million parameters).",
      fmt::format("{} of {} diverged and {} fell behind at {}, with models far smaller than the "
                  "paper's. Falling behind counts as holding in part.{}",
                  gaps.diverged.Yes(),
                  gaps.diverged.Cases(),
                  gaps.diverged.Partly(),
                  TrainingScaleText(in.settings),
                  gaps.list),
      gaps.diverged.Verdict(),
      BasisOf(in.settings, gaps.diverged)};
}

// ---- variants against each other

// Judges that a kind is worse than switchback, by each model and size at the most tokens; the other
// comparisons are only listed.
Claim WorseClaim(const Measured& in, std::string_view kind, std::string claim) {
  Comparisons largest, others;
  for (const std::vector<Group>& ladder : LaddersIn(in.final_table)) {
    for (const Group& group : ladder) {
      const auto one = AgainstSwitchback(in.tables, group, kind);
      if (one.has_value()) (group == ladder.back() ? largest : others).Add(*one);
    }
  }
  std::string measured = fmt::format(
      "Validation loss, paired by seed, at {} and the largest batch x sequence of each model and "
      "size: {} of {} have their 95 % interval above 0. An interval that contains 0 decides "
      "nothing.{}",
      TrainingScaleText(in.settings),
      largest.more.Yes(),
      largest.more.Cases(),
      largest.list);
  if (!others.list.empty()) {
    measured += fmt::format(
        "\n  At smaller sizes {} of {}:{}", others.more.Yes(), others.more.Cases(), others.list);
  }
  return {std::move(claim),
          std::move(measured),
          largest.more.Verdict(),
          BasisOf(in.settings, largest.more)};
}

Claim GrowthClaim(const Measured& in) {
  Comparisons found;
  for (const std::vector<Group>& ladder : LaddersIn(in.final_table)) {
    if (ladder.size() < 2) continue;
    const auto one = GrowthOf(in.tables, ladder.front(), ladder.back());
    if (one.has_value()) found.Add(*one);
  }
  return {
      "The weight gradient has \"dot products between vectors which have a length of batch size "
      "times sequence length\", and \"variance due to quantization increases with the inner "
      "dimension\" (Section 2.2.1): the gap of LLM.int8() to SwitchBack grows with it.",
      found.list.empty()
          ? "Two values of batch x sequence with llm-int8:int8 and switchback:int8 are needed."
          : fmt::format(
                "Loss of llm-int8:int8 minus that of switchback:int8, at the most tokens minus at "
                "the fewest, paired by seed, at {}: {} of {} have their 95 % interval above 0.{}",
                TrainingScaleText(in.settings),
                found.more.Yes(),
                found.more.Cases(),
                found.list),
      found.more.Verdict(),
      BasisOf(in.settings, found.more)};
}

Claim VariantsClaim(const Measured& in) {
  Comparisons found;
  for (const Group& group : GroupsIn(in.final_table)) {
    for (const char* const kind : {"switchback-m", "switchback-q"}) {
      const auto one = AgainstSwitchback(in.tables, group, kind);
      if (one.has_value()) found.Add(*one);
    }
  }
  return {
      "\"We observed only a negligible accuracy differences between SwitchBack and SwitchBackM\", "
      "and of SwitchBackQ \"we did not observe this to improve accuracy at the scales we "
      "consider\" (Section 2.2.1).",
      fmt::format("Loss minus that of SwitchBack, int8, paired by seed, at {}: {} of {} intervals "
                  "contain 0 and exclude {:g} % of what standard gained; nine of ten suffice.{}",
                  TrainingScaleText(in.settings),
                  found.same.Yes(),
                  found.same.Cases(),
                  100 * kContradicts,
                  found.list),
      found.same.VerdictOfMost(),
      BasisOf(in.settings, found.same)};
}

// Returns the same variant on the grids of bitsandbytes; nothing for formats without such a grid.
std::optional<Variant> OnBitsAndBytes(const Variant& variant) {
  const auto grid = [](const std::string& format) -> std::string {
    return format == "e4m3fn" ? "bnb-e4m3" : format == "e5m2" ? "bnb-e5m2" : "";
  };
  const Variant other{variant.kind, grid(variant.format), grid(variant.gradient_format)};
  if (other.format.empty() || other.gradient_format.empty()) return std::nullopt;
  return other;
}

Claim GridsClaim(const Measured& in) {
  Comparisons found;
  for (const Group& group : GroupsIn(in.final_table)) {
    const std::vector<Variant> variants = VariantsIn(in.final_table, group);
    for (const Variant& variant : variants) {
      const auto other = OnBitsAndBytes(variant);
      if (!other.has_value()) continue;
      if (std::find(variants.begin(), variants.end(), *other) == variants.end()) continue;
      found.Add(Compare(in.tables, group, *other, variant));
    }
  }
  return {
      "fp8 is simulated \"by rounding to the exact values of the float8 data type\" (Section "
      "2.2.1). The grids of bitsandbytes, which the paper used, are not those of OCP; conclusions "
      "about fp8 hold for both.",
      fmt::format("Loss on bitsandbytes' grids minus that on OCP's, paired by seed, at {}: {} of "
                  "{} intervals contain 0 and exclude {:g} % of what standard gained; nine of ten "
                  "suffice.{}",
                  TrainingScaleText(in.settings),
                  found.same.Yes(),
                  found.same.Cases(),
                  100 * kContradicts,
                  found.list),
      found.same.VerdictOfMost(),
      BasisOf(in.settings, found.same)};
}

// ---- the mechanism

// Returns own_error of an int8 kind; nothing if it was not measured.
std::optional<double> OwnError(const Table& errors, const Group& group, std::string_view kind) {
  for (size_t r = 0; r < errors.rows.size(); ++r) {
    const Variant variant = VariantOf(errors, r);
    if (GroupOf(errors, r) != group || variant.kind != kind || variant.format != "int8") continue;
    const double error = errors.Number(r, "own_error");
    if (std::isfinite(error)) return error;
  }
  return std::nullopt;
}

Claim MechanismClaim(const Measured& in) {
  std::string list;
  Tally tally;
  for (const std::vector<Group>& ladder : LaddersIn(in.errors)) {
    if (ladder.size() < 2) continue;
    double ratios[2];
    std::string text = fmt::format("\n  {} {}, {} to {} tokens:",
                                   ladder.front().model,
                                   ladder.front().size,
                                   ladder.front().tokens,
                                   ladder.back().tokens);
    bool known = true;
    for (int i = 0; i < 2; ++i) {
      const char* const kind = i == 0 ? "llm-int8" : "switchback";
      const auto few = OwnError(in.errors, ladder.front(), kind);
      const auto many = OwnError(in.errors, ladder.back(), kind);
      known &= few.has_value() && many.has_value();
      if (!known) break;
      ratios[i] = *many / *few;
      text += fmt::format("{} {} {:.3g} % to {:.3g} %, times {:.2f}",
                          i == 0 ? "" : ";",
                          kind,
                          100 * *few,
                          100 * *many,
                          ratios[i]);
    }
    if (!known) continue;
    list += text;
    tally.Add(AnswerOf(ratios[0] > kGrown && ratios[1] <= kGrown));
  }
  return {
      "Quantising the weight gradient causes noise that grows with batch x sequence, which "
      "SwitchBack avoids (Appendix D.2, D.3).",
      list.empty() ? "Two values of batch x sequence, llm-int8:int8, switchback:int8 and gradients "
                     "compared with float64 are needed."
                   : fmt::format("Relative error of dW that its own GEMM causes (own_error), "
                                 "mean over layers and steps. In {} of {} cases that of llm-int8 "
                                 "grows by more than {:.0f} % and that of switchback does not.{}",
                                 tally.Yes(),
                                 tally.Cases(),
                                 100 * (kGrown - 1),
                                 list),
      tally.Verdict(),
      TrainingScaleText(in.settings)};
}

std::string Notes(const Measured& in) {
  std::string text = "Trained: ";
  for (const std::string& model : Distinct(in.final_table, "model")) {
    std::string sizes;
    for (size_t r = 0; r < in.gaps.rows.size(); ++r) {
      const std::string size =
          fmt::format("{} ({} parameters)", in.gaps.Text(r, "size"), in.gaps.Text(r, "parameters"));
      if (in.gaps.Text(r, "model") != model || sizes.find(size) != std::string::npos) continue;
      sizes += (sizes.empty() ? "" : ", ") + size;
    }
    text +=
        fmt::format("{}{} {}", model == in.final_table.Text(0, "model") ? "" : "; ", model, sizes);
  }
  text += fmt::format(
      "; {}. The paper: CLIP ViT-Base to ViT-Huge, 20000 steps of 16384 images, half of their "
      "patches dropped, one seed.\nSingle-seed differences are not results. Intervals are 95 % "
      "(Student's t, paired by seed): one in 20 equal variants is expected outside.",
      TrainingScaleText(in.settings));
  for (const Group& group : GroupsIn(in.final_table)) {
    if (!BaselineLearned(in.gaps, group)) {
      text += fmt::format("\n{}: not judged, because standard did not learn or there is one seed.",
                          group.Text());
    }
  }
  return text;
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Measured in{settings,
                    tables,
                    tables.at(std::string(kFinalTable)),
                    tables.at(std::string(kGapsTable)),
                    tables.at(std::string(kErrorsTable))};
  return {
      {MatchClaim(in, "int8"),
       WorseClaim(in,
                  "llm-int8",
                  "LLM.int8(), SwitchBackQ with the weight gradient also in int8, falls behind: "
                  "\"a drop of 5.9 percentage points\" (Section 2.2.3, Figure 1)."),
       GrowthClaim(in),
       MechanismClaim(in),
       VariantsClaim(in),
       WorseClaim(in,
                  "tensor-wise",
                  "In int8 one scale per tensor for everything is not enough: the best "
                  "trade-off is row-wise quantization for inputs and gradients and tensor-wise "
                  "quantization only for weights (Section 2.2.1)."),
       MatchClaim(in, "fp8"),
       TensorWiseClaim(in),
       GridsClaim(in)},
      Notes(in)};
}

}  // namespace numsim::experiments::switchback_accuracy
