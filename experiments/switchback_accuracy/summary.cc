// The summary of `switchback-accuracy`: verdicts on section 2.2 and appendix D of [SwitchBack],
// from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/shared/distinct.h"
#include "experiments/switchback_accuracy/comparison.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

constexpr const char* kHolds = "holds";
constexpr const char* kFailsVerdict = "does not hold";
constexpr const char* kPartly = "holds in part";
constexpr const char* kNotMeasured = "not measured";

// The error of a weight gradient grew if it is larger by more than this factor.
constexpr double kGrown = 1.1;

struct Measured {
  const Settings& settings;
  const Tables& tables;
  const Table& final_table;
  const Table& gaps;
  const Table& errors;
};

const char* AllOrSome(size_t yes, size_t all) {
  if (all == 0) return kNotMeasured;
  return yes == all ? kHolds : yes == 0 ? kFailsVerdict : kPartly;
}

// Judges intervals that should contain 0. Chance alone makes one in 20 miss it, so one in ten may.
const char* AlmostAll(size_t yes, size_t all) {
  return all > 0 && 10 * yes >= 9 * all ? kHolds : AllOrSome(yes, all);
}

std::string ScaleText(const Settings& settings) {
  return fmt::format(
      "{} steps, {} seed{}", settings.Get("steps"), settings.seeds, settings.seeds == 1 ? "" : "s");
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

// The rows of gaps.csv of a kind in a precision, and the number of rows with each verdict.
struct Gaps {
  std::string list;
  size_t judged = 0, within = 0, behind = 0, diverged = 0;
};

Gaps GapsOf(const Measured& in, std::string_view kind, std::string_view precision) {
  Gaps found;
  for (size_t r = 0; r < in.gaps.rows.size(); ++r) {
    const Variant variant = VariantOf(in.gaps, r);
    if (variant.kind != kind || Precision(variant) != precision) continue;
    const std::string& verdict = in.gaps.Text(r, "verdict");
    found.list += "\n  " + GapText(in.gaps, r) + ": " + verdict;
    found.judged += verdict != kNoVerdict ? 1 : 0;
    found.within += verdict == kWithinNoise ? 1 : 0;
    found.behind += verdict == kBehind ? 1 : 0;
    found.diverged += verdict == kDiverged ? 1 : 0;
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
      fmt::format("{} of {} within noise at {}: the 95 % interval of the gap, paired by seed, "
                  "contains 0 or is below it; nine of ten suffice. A gap smaller than the interval "
                  "is not detected. Gaps in nats, then as a share of what standard gained.{}",
                  gaps.within,
                  gaps.judged,
                  ScaleText(in.settings),
                  gaps.list),
      AlmostAll(gaps.within, gaps.judged)};
}

Claim TensorWiseClaim(const Measured& in) {
  const Gaps gaps = GapsOf(in, "tensor-wise", "fp8");
  const char* verdict = AllOrSome(gaps.diverged, gaps.judged);
  if (verdict == std::string_view(kFailsVerdict) && gaps.behind > 0) verdict = kPartly;
  return {
      "In fp8 \"training diverges for the baseline that uses tensor-wise quantization for all "
      "matrices\" (Section 2.2.3, Figure 1; CLIP above 420 million parameters).",
      fmt::format("{} of {} diverged and {} fell behind at {}, with models far smaller than the "
                  "paper's. Falling behind counts as holding in part.{}",
                  gaps.diverged,
                  gaps.judged,
                  gaps.behind,
                  ScaleText(in.settings),
                  gaps.list),
      verdict};
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
      ScaleText(in.settings),
      largest.more,
      largest.judged,
      largest.list);
  if (!others.list.empty()) {
    measured +=
        fmt::format("\n  At smaller sizes {} of {}:{}", others.more, others.judged, others.list);
  }
  return {std::move(claim), std::move(measured), AllOrSome(largest.more, largest.judged)};
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
                ScaleText(in.settings),
                found.more,
                found.judged,
                found.list),
      AllOrSome(found.more, found.judged)};
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
                  "contain 0; nine of ten suffice.{}",
                  ScaleText(in.settings),
                  found.same,
                  found.judged,
                  found.list),
      AlmostAll(found.same, found.judged)};
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
                  "{} intervals contain 0; nine of ten suffice.{}",
                  ScaleText(in.settings),
                  found.same,
                  found.judged,
                  found.list),
      AlmostAll(found.same, found.judged)};
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
  size_t yes = 0, all = 0;
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
    ++all;
    yes += ratios[0] > kGrown && ratios[1] <= kGrown ? 1 : 0;
  }
  return {
      "Quantising the weight gradient causes noise that grows with batch x sequence, which "
      "SwitchBack avoids (Appendix D.2, D.3).",
      list.empty() ? "Two values of batch x sequence, llm-int8:int8, switchback:int8 and gradients "
                     "compared with float64 are needed."
                   : fmt::format("Relative error of dW that its own GEMM causes (own_error), "
                                 "mean over layers and steps. In {} of {} cases that of llm-int8 "
                                 "grows by more than {:.0f} % and that of switchback does not.{}",
                                 yes,
                                 all,
                                 100 * (kGrown - 1),
                                 list),
      AllOrSome(yes, all)};
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
      ScaleText(in.settings));
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
