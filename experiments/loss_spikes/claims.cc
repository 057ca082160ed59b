// The claims of [SwitchBack], section 3 and appendices E and F, and what they share.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/core/settings.h"
#include "experiments/loss_spikes/claim_parts.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::loss_spikes {
namespace {

constexpr const char* kScale =
    "The paper: CLIP ViT-Base to ViT-Huge, 20,000 steps of up to 16,384 images, one seed. A run states "
    "its own size.";

}  // namespace

Margin SpikeMargin() {
  return {.value = 0.5,
          .unit = "loss spikes per run",
          .justification = "The paper counts 15 spikes in its runs of a model: several per run."};
}

Margin AccuracyMargin(double value) {
  return {.value = value,
          .unit = "percentage points",
          .justification = "What the paper's figures resolve."};
}

ClaimSpec Claim(const std::string& name, std::vector<std::string> items, std::string statement) {
  ClaimSpec claim;
  claim.id = "loss-spikes/" + name;
  for (std::string& item : items) claim.items.push_back("switchback/" + std::move(item));
  claim.statement = std::move(statement);
  claim.scale = kScale;
  return claim;
}

double UnlessDiverged(const Frame& run, const char* column) {
  return run.Text("status") == "finished" ? run.Number(column) : kInfinity;
}
double Spikes(const Frame& run) { return UnlessDiverged(run, "loss_spikes"); }
double Accuracy(const Frame& run) { return 100 * run.Number("accuracy"); }
double Loss(const Frame& run) {
  return std::min(UnlessDiverged(run, "valid_loss"), run.Number("chance_loss"));
}

std::string High(const Settings& settings) { return settings.GetList("axis-beta2").front(); }
std::string Low(const Settings& settings) { return settings.GetList("axis-beta2").back(); }

Frame RunsOf(const Frame& runs, const Arm& arm) {
  return runs.Where([&](const Frame& row) { return ArmOf(row) == arm; });
}

Evidence Compare(const Tables& tables, const std::vector<Pair>& pairs, Outcome outcome) {
  const Frame runs = tables.at(std::string(kRunsTable));
  Evidence evidence;
  std::vector<Arm> arms;
  for (const auto& [arm, reference] : pairs) {
    for (const Arm& one : {arm, reference}) {
      if (one.model == kStudent && (outcome == Loss || outcome == Accuracy)) {
        return NotTestedBecause(
            "out of reach: a student has squared errors, neither nats nor accuracy");
      }
      const Frame own = RunsOf(runs, one);
      if (own.Empty()) return NotTestedBecause("was not trained: " + one.Text());
      evidence.parameters = std::max(evidence.parameters, own.Number("parameters"));
      arms.push_back(one);
    }
    evidence.contrasts.push_back(Gap(arm.Text(), reference.Text()));
  }
  if (outcome == Loss && std::all_of(arms.begin(), arms.end(), [&](const Arm& arm) {
        return RunsOf(runs, arm).Mean("collapsed") > 0.5;
      })) {
    return LeftOutBecause("most runs of each arm collapsed");
  }
  const Frame compared = runs.Where([&](const Frame& row) {
    return std::find(arms.begin(), arms.end(), ArmOf(row)) != arms.end();
  });
  OutcomeTable table = OutcomesOf(compared, kArmKey, outcome);
  // The contrasts name arms by their text, the table by the cells.
  size_t i = 0;
  for (const Frame& arm : compared.By(kArmKey)) table.arms[i++] = ArmOf(arm).Text();
  evidence.outcomes = std::move(table);
  return evidence;
}

Evidence CompareSpikes(const Tables& tables, const Pair& pair) {
  Evidence evidence = Compare(tables, {pair}, Spikes);
  if (!evidence.not_tested.empty()) return evidence;
  const Frame runs = tables.at(std::string(kRunsTable));
  const auto mean = [&](const Arm& arm) {
    double sum = 0;
    RunsOf(runs, arm).ForEach([&](const Frame& run) { sum += Spikes(run); });
    return sum / static_cast<double>(RunsOf(runs, arm).Size());
  };
  const double least = SpikeMargin().value, one = mean(pair.first), other = mean(pair.second);
  if (std::max(one, other) >= least) return evidence;
  return LeftOutBecause(
      fmt::format("{:.2g} and {:.2g} loss spikes per run, expected {} or more in one of the arms",
                  one,
                  other,
                  least));
}

std::vector<ClaimSpec> Claims() {
  std::vector<ClaimSpec> claims;
  for (const auto& of_subject :
       {AxisClaims(), PredictionClaims(), RemedyClaims(), ChangeClaims()}) {
    claims.insert(claims.end(), of_subject.begin(), of_subject.end());
  }
  return claims;
}

std::string Notes(const Settings& settings, const Tables& tables) {
  std::string text;
  const Frame arms = tables.at(std::string(kArmsTable));
  double collapsed = 0;
  arms.ForEach(
      [&](const Frame& arm) { collapsed += arm.Number("collapsed") * arm.Number("seeds"); });
  const size_t runs = tables.at(std::string(kRunsTable)).rows.size();
  text += fmt::format("{} trainings, {:.0f} of them collapsed.\n", runs, collapsed);
  const auto factor = settings.Get("changes").find("jump:");
  if (factor != std::string::npos) {
    text +=
        "A jump of all gradients by F at once: the closed form for gradients that were constant is RMS_t = "
        "F / sqrt(beta2 + (1 - beta2) F^2), below 1 / sqrt(1 - beta2), and steps that grow at most by the "
        "maximum over k of (beta1^k + (1 - beta1^k) F) / sqrt(beta2^k + (1 - beta2^k) F^2).\n";
  }
  text += "Losses of CLIP are comparable only for the same batch.";
  return text;
}

}  // namespace numsim::experiments::loss_spikes
