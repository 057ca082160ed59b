// The claims of `loss-spikes` about changes of the data, and about planted changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/core/settings.h"
#include "experiments/loss_spikes/claim_parts.h"

namespace numsim::experiments::loss_spikes {
namespace {

ClaimSpec NewData(std::string_view optimizer) {
  const bool stable = optimizer == kStable;
  ClaimSpec claim =
      Claim(stable ? "update-clipping-helps-on-new-data" : "low-beta2-helps-on-new-data",
            {"figure-4"},
            fmt::format("Not in the paper, which says that the estimator is out of date when "
                        "\"the learning signal changes\": after a change of the data, {} ends "
                        "at a lower loss.",
                        stable ? "update clipping" : "a lower beta2"));
  claim.side = -1;
  claim.primary = false;
  claim.contrast =
      stable ? std::string(
                   "valid_loss of stable-adamw minus of adamw, new data, first of --axis-beta2") +
                   kGuess
             : std::string(
                   "valid_loss at the second of --axis-beta2 minus at the first, adamw, new data") +
                   kGuess;
  claim.margin = LossMargin("nats");
  claim.evidence = [stable](const Settings& settings, const Tables& tables) {
    const Arm high = With(Centre(settings, High(settings)), &Arm::data, kNewData);
    const Arm other =
        stable ? With(high, &Arm::optimizer, kStable) : With(high, &Arm::beta2, Low(settings));
    return Compare(tables, {{other, high}}, Loss);
  };
  return claim;
}

double ChangeRms(const Frame& run) { return UnlessDiverged(run, "change_max_rms"); }

ClaimSpec Planted(const char* kind, ClaimKind claim_kind, const char* name, const char* statement) {
  ClaimSpec claim = Claim(name, {"figure-4"}, statement);
  claim.kind = claim_kind;
  claim.primary = false;
  claim.contrast = fmt::format(
      "largest RMS_t of the patch embedding in the 50 steps from --change-step on, {}:F minus steady, "
      "adamw, first of --axis-beta2; a planted change, no claim about frequency",
      kind);
  claim.margin = {.value = 1.3, .unit = "of RMS_t", .justification = "From 1 to the paper's 2.3."};
  claim.evidence = [prefix = std::string(kind) + ":"](const Settings& settings,
                                                      const Tables& tables) {
    if (ChangeStep(settings) < kBeforeChange) {
      return NotTestedBecause(fmt::format("--change-step is below {}", kBeforeChange));
    }
    if (settings.Get("changes").empty()) return NotTestedBecause("there is no change (--changes)");
    const Arm centre = Centre(settings, High(settings));
    for (const std::string& change : settings.GetList("changes")) {
      if (!change.starts_with(prefix)) continue;
      return Compare(tables, {{With(centre, &Arm::data, change), centre}}, ChangeRms);
    }
    return NotTestedBecause("--changes has no " + prefix + "F");
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> ChangeClaims() {
  return {NewData(kAdamW),
          NewData(kStable),
          Planted("jump",
                  ClaimKind::kDifference,
                  "jump-raises-rms",
                  "A signal that grows at once puts the second moment out of date (Section 3.4)."),
          Planted("constant",
                  ClaimKind::kEquivalence,
                  "constant-factor-does-nothing",
                  "Control: Adam is invariant to a constant factor of the gradients."),
          Planted("contrast",
                  ClaimKind::kDifference,
                  "contrast-raises-rms",
                  "A jump of the images' contrast puts the second moment of the patch embedding "
                  "out of date (Section 3.4).")};
}

}  // namespace numsim::experiments::loss_spikes
