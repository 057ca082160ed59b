// The summary of `linear-speed` on a GPU beyond the paper's claims: this project's goals, and the
// sizes from which a layer in 8 bits is faster.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/core/verdict.h"
#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr double kGoalDim = 4096;
constexpr std::string_view kGoalTokens = "65536";
constexpr std::string_view kGoalWidth = "4";
constexpr double kQuantizeShare = 0.15;

struct Goal {
  std::string_view kind, format;
  double speedup;
};
constexpr Goal kGoals[] = {
    {"switchback", "e4m3fn", 1.30}, {"switchback", "int8", 1.15}, {"tensor-wise", "e4m3fn", 1.50}};

bool OnDevice(const LayerKey& key) { return key.backend == "cuda"; }

// Values of a layer at the size of the goals; NaN if it was not timed at that size.
struct AtGoal {
  LayerKey key;
  double speedup = std::nan(""), product_share = 0, quantize_share = std::nan("");
};

// Returns the values of the first layer of the goal's kind and format that was timed at that size.
AtGoal Find(const Table& layers, const Goal& goal) {
  for (const LayerKey& key : LayerKeys(layers)) {
    if (!OnDevice(key) || key.kind != goal.kind || key.format != goal.format) continue;
    if (key.width != kGoalWidth) continue;
    const auto at = [&](std::string_view column) {
      return ValueAt(CurveOf(layers, key, kGoalTokens, column), kGoalDim);
    };
    const AtGoal found{key, at("speedup"), at("product_share"), at("quantize_share")};
    if (!std::isnan(found.quantize_share)) return found;
  }
  return {};
}

Claim SpeedupGoal(const Table& layers, const Goal& goal) {
  Claim claim;
  claim.claim = fmt::format(
      "Goal of this project on an H200: {} {} is at least {:.2f} times as fast as three bf16 "
      "GEMMs of the library in the same process, at dim {:g} and {} tokens.",
      goal.kind,
      goal.format,
      goal.speedup,
      kGoalDim,
      kGoalTokens);
  const AtGoal found = Find(layers, goal);
  if (std::isnan(found.speedup)) {
    claim.measured = "Not timed at that size together with standard.";
    claim.verdict = kNotMeasured;
    return claim;
  }
  const double ratio = found.speedup / goal.speedup;
  claim.measured = fmt::format(
      "{:.3f} times on {} ({}), {:.1f} % {} the goal; if everything but its GEMMs were free, it "
      "would be {:.3f} times. The paper: 1.05 to 1.54 times (5 to 35 % less time) for int8 "
      "SwitchBack on an A100. Plain calls of the libraries on an H200: 0.54 to 1.04 times.",
      found.speedup,
      found.key.device,
      found.key.library,
      100 * std::abs(ratio - 1),
      ratio >= 1 ? "above" : "below",
      found.speedup / found.product_share);
  claim.verdict = ratio >= 1 ? kHolds : kDoesNotHold;
  return claim;
}

Claim ShareGoal(const Table& layers) {
  Claim claim;
  claim.claim = fmt::format(
      "Goal of this project on an H200: quantise operations take at most {:g} % of the layer's "
      "time, at dim {:g} and {} tokens.",
      100 * kQuantizeShare,
      kGoalDim,
      kGoalTokens);
  Tally tally;
  for (const Goal& goal : kGoals) {
    const double share = Find(layers, goal).quantize_share;
    if (std::isnan(share)) continue;
    tally.Add(AnswerOf(share <= kQuantizeShare));
    claim.measured += fmt::format(
        "{}{} {}: {:.1f} %", tally.Cases() == 1 ? "" : "; ", goal.kind, goal.format, 100 * share);
  }
  claim.measured += tally.Cases() == 0 ? "Not timed at that size." : ".";
  claim.verdict = tally.Verdict();
  return claim;
}

// Returns the start of the saving and the range of speedups: "from 1433 on (0.91 to 1.42 times)".
std::string Begin(const Table& crossings, size_t row) {
  const double between = crossings.Number(row, "between");
  std::string text = std::isnan(between) ? "at none"
                     : crossings.Number(row, "always") == 1
                         ? "at all"
                         : fmt::format("from {:.0f} on", between);
  return fmt::format("{} ({:.2f} to {:.2f} times)",
                     text,
                     crossings.Number(row, "speedup_low"),
                     crossings.Number(row, "speedup_high"));
}

}  // namespace

std::vector<Claim> Goals(const Table& layers) {
  std::vector<Claim> claims;
  const std::vector<LayerKey> keys = LayerKeys(layers);
  if (std::none_of(keys.begin(), keys.end(), OnDevice)) return claims;
  for (const Goal& goal : kGoals) claims.push_back(SpeedupGoal(layers, goal));
  claims.push_back(ShareGoal(layers));
  return claims;
}

std::string CrossingNotes(const Table& crossings) {
  const std::vector<LayerKey> keys = LayerKeys(crossings);
  size_t width = 0;
  for (const LayerKey& key : keys) width = std::max(width, Label(key, keys).size());
  std::string text;
  for (size_t r = 0; r < crossings.rows.size(); ++r) {
    const LayerKey key = KeyOf(crossings, r);
    if (!OnDevice(key)) continue;
    const std::string& along = crossings.Text(r, "along");
    text += fmt::format("  {:<{}} {:>6} {}: {:<6} {}\n",
                        Label(key, keys),
                        width,
                        crossings.Text(r, "at"),
                        along == "dim" ? "tokens" : "dim   ",
                        along,
                        Begin(crossings, r));
  }
  if (text.empty()) return text;
  return "The size from which each layer is faster than standard at all greater sizes that were "
         "timed, interpolated: the smallest dim at a number of tokens, or the smallest number of "
         "tokens at a dim. In parentheses, the speed-up at the smallest and the greatest size:\n" +
         text;
}

}  // namespace numsim::experiments::linear_speed
