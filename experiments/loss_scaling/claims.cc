// The claims of [SwitchBack], appendix G, and the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/loss_scaling/loss_scaling.h"
#include "experiments/runner/settings.h"
#include "numsim/optim/loss_scaler.h"

namespace numsim::experiments::loss_scaling {
namespace {

constexpr const char* kScale =
    "The paper: CLIP ViT-Huge, 20,000 steps, one seed. A run states its own size.";

ClaimSpec Claim(const std::string& name, std::vector<std::string> items, std::string statement) {
  ClaimSpec claim;
  claim.id = "loss-scaling/" + name;
  for (std::string& item : items) claim.items.push_back("switchback/" + std::move(item));
  claim.statement = std::move(statement);
  claim.scale = kScale;
  return claim;
}

Frame Runs(const Tables& tables) { return tables.at(std::string(kRunsTable)); }

// Compares two arms by the column; a run that diverged counts as no better than at its start.
Evidence Compare(const Tables& tables, const Arm& arm, const Arm& reference, const char* column) {
  const Frame runs = Runs(tables);
  Evidence evidence;
  evidence.parameters = runs.Number("parameters");
  evidence.outcomes = OutcomesOf(runs, {"scaler", "scale", "event"}, [column](const Frame& run) {
    const bool diverged = run.Text("status") != "finished";
    return diverged && std::string_view(column) == "valid_loss" ? run.Number("start_loss")
                                                                : run.Number(column);
  });
  const auto name = [](const Arm& one) {
    return one.scaler + " / " + one.scale + " / " + one.event;
  };
  evidence.contrasts = {Gap(name(arm), name(reference))};
  return evidence;
}

std::string FirstScale(const Settings& settings) { return settings.GetList("scales").front(); }

Arm Burst(const Settings& settings, std::string_view scaler) {
  return {std::string(scaler), FirstScale(settings), std::string(kBurst)};
}
Arm Fp32() { return {std::string(kFp32), "1", std::string(kNatural)}; }

ClaimSpec TensorTrainsInFp16(const char* event) {
  const bool burst = event == kBurst;
  ClaimSpec claim = Claim(
      burst ? "tensor-scaler-survives-burst" : "tensor-scaler-trains-in-fp16",
      {"appendix-g"},
      burst
          ? "A tensor-level scaler with a fixed scale is not thrown back when one tensor has Inf or "
            "NaN in a few steps (Appendix G)."
          : "A tensor-level scaler with a fixed scale \"allows fp16 mixed precision training for "
            "CLIP models\" (Appendix G): the loss is that of float32.");
  claim.kind = ClaimKind::kEquivalence;
  claim.contrast = fmt::format("valid_loss of tensor, {}, first of --scales, minus of fp32", event);
  claim.margin = LossMargin("nats");
  claim.evidence = [event = std::string(event)](const Settings& settings, const Tables& tables) {
    const Arm arm{std::string(kTensor), FirstScale(settings), event};
    return Compare(tables, arm, Fp32(), "valid_loss");
  };
  return claim;
}

ClaimSpec DynamicIsThrownBack() {
  ClaimSpec claim =
      Claim("dynamic-costs-loss",
            {"appendix-g"},
            "\"We may be adjusting the loss scalar too often\": PyTorch's scaler loses against "
            "the tensor-level one when one tensor has Inf or NaN in a few steps (Appendix G).");
  claim.contrast = "valid_loss of dynamic, burst, minus of tensor, burst";
  claim.margin = LossMargin("nats");
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return Compare(tables, Burst(settings, kDynamic), Burst(settings, kTensor), "valid_loss");
  };
  return claim;
}

constexpr double kFew = 0.05;  // share of the tensors; one of the smallest model is 0.02

ClaimSpec WholeNetworkIsSkipped() {
  ClaimSpec claim =
      Claim("dynamic-skips-the-network",
            {"appendix-g"},
            "\"With the PyTorch default loss scalar an Inf/NaN in a single layer will skip the "
            "update for the whole network\"; the tensor-level scaler skips that tensor alone.");
  claim.kind = ClaimKind::kExact;
  claim.contrast =
      "burst_skipped of every seed: 1 with dynamic, at most 0.05 with tensor (others may overflow too)";
  claim.scale = "Any.";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    Evidence evidence;
    bool holds = true;
    for (const std::string_view scaler : {kDynamic, kTensor}) {
      const Arm arm = Burst(settings, scaler);
      double least = 1, most = 0;
      bool reached = true;
      Runs(tables).ForEach([&](const Frame& run) {
        if (ArmOf(run) != arm) return;
        reached = reached && !std::isnan(run.Number("burst_skipped"));
        least = std::min(least, run.Number("burst_skipped"));
        most = std::max(most, run.Number("burst_skipped"));
      });
      if (!reached) return NotTestedBecause("a run diverged before the burst");
      holds = holds && (scaler == kDynamic ? least == 1 : most > 0 && most <= kFew);
      evidence.measured += fmt::format("\n  {}: {:.3g} to {:.3g}", scaler, least, most);
    }
    evidence.exact = holds;
    return evidence;
  };
  return claim;
}

constexpr uint64_t kThousands = 1000;

ClaimSpec ThousandsOfSteps() {
  ClaimSpec claim =
      Claim("recovery-takes-thousands",
            {"appendix-g", "figure-21"},
            "\"Thousands of iterations would be required before the loss scalar recovered\" "
            "under PyTorch's default (Appendix G).");
  claim.kind = ClaimKind::kExact;
  claim.contrast =
      "steps until PyTorch's default scaler is back after 1 to 10 steps in a row that are not finite: at "
      "least 1000, 2000 for each halving";
  claim.scale = "Any: the scaler alone.";
  claim.evidence = [](const Settings& /*settings*/, const Tables& tables) {
    Evidence evidence;
    bool holds = true;
    Frame(tables.at(std::string(kRecoveryTable))).ForEach([&](const Frame& row) {
      const double steps = row.Number("steps");
      holds = holds && steps >= kThousands && steps == 2000 * row.Number("burst");
      evidence.measured +=
          fmt::format("\n  {} in a row: {} steps", row.Text("burst"), row.Text("steps"));
    });
    evidence.exact = holds;
    return evidence;
  };
  return claim;
}

constexpr double kLeastSkipped = 10;  // updates that a statement about their tensors needs

// Returns the number of skipped updates of tensors in blocks and before them.
double SkippedInBlocks(const Tables& tables, const Arm& arm) {
  double skipped = 0;
  Frame(tables.at(std::string(kTensorsTable))).ForEach([&](const Frame& row) {
    const std::string tensor = row.Text("tensor");
    if (ArmOf(row) == arm && (IsEarly(tensor) || IsLate(tensor))) skipped += row.Number("skipped");
  });
  return skipped;
}

ClaimSpec EarlyTensorsAlone() {
  ClaimSpec claim =
      Claim("early-tensors-alone",
            {"appendix-g"},
            "\"We never observe any Inf/NaN for any transformer block greater than 0\" "
            "(Appendix G): all are before block 1.");
  claim.kind = ClaimKind::kEquivalence;
  claim.contrast =
      "share of the skipped updates of blocks and of what is before them that are before block 1, minus 1; "
      "tensor, natural, smallest of --scales with 10 such updates in two seeds or more; per seed";
  claim.margin = {
      .value = 0.05, .unit = "of the skipped updates", .justification = "One in twenty."};
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    std::vector<std::string> scales = settings.GetList("scales");
    std::sort(scales.begin(), scales.end(), [](const std::string& a, const std::string& b) {
      return std::stod(a) < std::stod(b);
    });
    for (const std::string& scale : scales) {
      const Arm arm{std::string(kTensor), scale, std::string(kNatural)};
      SeedValues shares;
      Runs(tables).ForEach([&](const Frame& run) {
        const double early = run.Number("early");
        if (ArmOf(run) == arm && !std::isnan(early)) shares[run.Text("seed")] = early;
      });
      if (shares.size() >= 2 && SkippedInBlocks(tables, arm) >= kLeastSkipped) {
        return AgainstReference("early tensors", shares, 1);
      }
    }
    return LeftOutBecause(fmt::format(
        "fewer than {} updates overflowed by themselves in two seeds (--scales)", kLeastSkipped));
  };
  return claim;
}

constexpr double kLeastSpikes = 10;

ClaimSpec SpikesCoincide(const char* name, const char* with, const char* near, const char* what) {
  ClaimSpec claim =
      Claim(name,
            {"figure-21"},
            fmt::format("Loss spikes can coincide with spikes of {} (Figure 21, an existence "
                        "example): more often than by chance.",
                        what));
  claim.primary = false;
  claim.contrast = fmt::format(
      "share of the loss spikes with a spike of {} at most 2 steps away, minus the share of all steps that "
      "are as near to one; per seed, over its natural runs",
      what);
  claim.margin = {
      .value = 0.1, .unit = "of the loss spikes", .justification = "As for RMS spikes."};
  claim.evidence = [=](const Settings& /*settings*/, const Tables& tables) {
    double all = 0;
    SeedValues excess;
    for (const Frame& seed : Runs(tables).Where("event", std::string(kNatural)).By({"seed"})) {
      double spikes = 0, together = 0, expected = 0;
      seed.ForEach([&](const Frame& run) {
        const double own = run.Number("loss_spikes");
        spikes += own;
        together += run.Number(with);
        expected += own * run.Number(near);
      });
      all += spikes;
      if (spikes > 0) excess[seed.Text("seed")] = (together - expected) / spikes;
    }
    if (all < kLeastSpikes || excess.size() < 2) {
      return LeftOutBecause(
          fmt::format("{:.0f} loss spikes, expected at least {:.0f}", all, kLeastSpikes));
    }
    return AgainstReference("above chance", excess, 0);
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  return {TensorTrainsInFp16("natural"),
          TensorTrainsInFp16("burst"),
          DynamicIsThrownBack(),
          EarlyTensorsAlone(),
          WholeNetworkIsSkipped(),
          ThousandsOfSteps(),
          SpikesCoincide(
              "spikes-with-gradients", "with_gradient", "near_gradient", "the gradient norm"),
          SpikesCoincide("spikes-with-activations",
                         "with_activation",
                         "near_activation",
                         "the largest activation")};
}

}  // namespace numsim::experiments::loss_scaling
