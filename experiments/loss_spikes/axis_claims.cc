// The claims of `loss-spikes` about sizes, batches, learning rates and beta2: Figures 3, 12 and 13.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/core/settings.h"
#include "experiments/loss_spikes/claim_parts.h"

namespace numsim::experiments::loss_spikes {
namespace {

struct ClaimAxis {
  const char* name;    // of the claims
  const char* option;  // list of other values
  std::string Arm::*field;
  const char* figure;
  const char* text;
};
constexpr ClaimAxis kAxes[] = {{"size", "sizes", &Arm::size, "figure-3", "model size"},
                               {"batch", "batches", &Arm::batch, "figure-12", "batch size"},
                               {"lr", "lrs", &Arm::lr, "figure-13", "learning rate"}};

// Returns the smallest and the largest value along an axis; nullopt if there is only the centre.
std::optional<std::pair<std::string, std::string>> EndsOf(const Settings& settings,
                                                          const ClaimAxis& axis) {
  if (settings.Get(axis.option).empty()) return std::nullopt;
  std::vector<std::string> values = settings.GetList(axis.option);
  values.push_back(Centre(settings, "").*axis.field);
  const auto less = [&](const std::string& a, const std::string& b) {
    return PlaceOf(axis.field, a) < PlaceOf(axis.field, b);
  };
  const auto [least, most] = std::minmax_element(values.begin(), values.end(), less);
  if (PlaceOf(axis.field, *least) == PlaceOf(axis.field, *most)) return std::nullopt;
  return std::pair{*least, *most};
}

// Returns the evidence of a comparison that needs the two ends of an axis.
template <typename Compared>
auto AtEnds(const ClaimAxis& axis, Compared compared) {
  return [axis, compared](const Settings& settings, const Tables& tables) {
    const auto ends = EndsOf(settings, axis);
    if (!ends) {
      return NotTestedBecause(fmt::format("there is one {} (--{})", axis.text, axis.option));
    }
    return compared(settings, tables, ends->first, ends->second);
  };
}

// Returns AdamW at the largest value of an axis: at the second of --axis-beta2, then at the first.
Pair LowThenHigh(const Settings& settings, const ClaimAxis& axis, const std::string& most) {
  return {With(Centre(settings, Low(settings)), axis.field, most),
          With(Centre(settings, High(settings)), axis.field, most)};
}

ClaimSpec Grows(const ClaimAxis& axis) {
  ClaimSpec claim = Claim(std::string(axis.name) + "-brings-spikes",
                          {axis.figure},
                          fmt::format("Loss spikes increase with {} (Section 3.3).", axis.text));
  claim.contrast = fmt::format(
      "loss spikes per run at the largest {} minus at the smallest, AdamW at the first of --axis-beta2",
      axis.text);
  claim.margin = SpikeMargin();
  claim.evidence = AtEnds(
      axis, [axis](const auto& settings, const auto& tables, const auto& least, const auto& most) {
        const Arm centre = Centre(settings, High(settings));
        return CompareSpikes(tables,
                             {With(centre, axis.field, most), With(centre, axis.field, least)});
      });
  return claim;
}

ClaimSpec Mitigates(const ClaimAxis& axis) {
  ClaimSpec claim = Claim(
      std::string(axis.name) + "-beta2-mitigates",
      {axis.figure},
      fmt::format("\"Reducing AdamW beta2 from its default in PyTorch of 0.999 mitigates loss "
                  "spikes\" at a large {} (Section 3.3).",
                  axis.text));
  claim.side = -1;
  claim.contrast = fmt::format(
      "loss spikes per run at the second of --axis-beta2 minus at the first, AdamW at the largest {}",
      axis.text);
  claim.margin = SpikeMargin();
  claim.evidence = AtEnds(
      axis,
      [axis](const auto& settings, const auto& tables, const auto& /*least*/, const auto& most) {
        return CompareSpikes(tables, LowThenHigh(settings, axis, most));
      });
  return claim;
}

ClaimSpec LowBeta2Slows() {
  ClaimSpec claim = Claim("low-beta2-slows",
                          {"figure-3", "figure-12", "figure-13"},
                          "\"Reducing beta2 too much slows training\" (Figures 3, 12, 13).");
  claim.contrast =
      std::string(
          "valid_loss at the smallest of --beta2 minus at the second of --axis-beta2, AdamW, centre") +
      kGuess;
  claim.margin = LossMargin("nats");
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const std::vector<std::string> values = settings.GetList("beta2");
    const std::string least =
        *std::min_element(values.begin(), values.end(), [](const auto& a, const auto& b) {
          return std::stod(a) < std::stod(b);
        });
    if (std::stod(least) >= std::stod(Low(settings)))
      return NotTestedBecause("--beta2 has no lower value");
    return Compare(tables, {{Centre(settings, least), Centre(settings, Low(settings))}}, Loss);
  };
  return claim;
}

ClaimSpec HighBeta2Costs() {
  ClaimSpec claim =
      Claim("high-beta2-costs",
            {"figure-4", "figure-3"},
            "Loss spikes \"slow learning as recovery time is required\" (Section 3.4): "
            "beta2 = 0.999 ends at a higher loss than a lower beta2.");
  claim.contrast =
      std::string("valid_loss at the first of --axis-beta2 minus at the second, AdamW, centre") +
      kGuess;
  claim.margin = LossMargin("nats");
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return Compare(
        tables, {{Centre(settings, High(settings)), Centre(settings, Low(settings))}}, Loss);
  };
  return claim;
}

ClaimSpec HighBeta2CostsAtLargeRate() {
  ClaimSpec claim =
      Claim("high-beta2-costs-at-large-lr",
            {"figure-13"},
            "Loss spikes \"slow learning\" (Section 3.4), and a larger learning rate brings "
            "more of them: there beta2 = 0.999 ends at a higher loss than a lower beta2.");
  claim.primary = false;
  claim.contrast =
      std::string(
          "valid_loss at the first of --axis-beta2 minus at the second, AdamW, largest of --lrs") +
      kGuess;
  claim.margin = LossMargin("nats");
  constexpr const ClaimAxis& kAxis = kAxes[2];
  claim.evidence = AtEnds(
      kAxis, [](const auto& settings, const auto& tables, const auto& /*least*/, const auto& most) {
        const auto [low, high] = LowThenHigh(settings, kAxis, most);
        return Compare(tables, {{high, low}}, Loss);
      });
  return claim;
}

}  // namespace

std::vector<ClaimSpec> AxisClaims() {
  std::vector<ClaimSpec> claims;
  for (const ClaimAxis& axis : kAxes) claims.push_back(Grows(axis));
  for (const ClaimAxis& axis : kAxes) claims.push_back(Mitigates(axis));
  claims.push_back(LowBeta2Slows());
  claims.push_back(HighBeta2Costs());
  claims.push_back(HighBeta2CostsAtLargeRate());
  return claims;
}

}  // namespace numsim::experiments::loss_spikes
