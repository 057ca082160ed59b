// The claims of `loss-spikes` that compare arms: Section 3 and Appendix F.1 of [SwitchBack].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/core/settings.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::loss_spikes {
namespace {

using study::ArmContrast;
using study::ClaimRow;
using study::Pick;
using study::Picks;

using Outcome = double (*)(const Frame& run);

// Returns the number of a column; infinity, which is taken as diverged, if the run did: the few
// steps that it took say nothing about a whole training.
double UnlessDiverged(const Frame& run, const char* column) {
  return run.Text("status") == "finished" ? run.Number(column) : kInfinity;
}
double SpikesOf(const Frame& run) { return UnlessDiverged(run, "loss_spikes"); }
double Accuracy(const Frame& run) { return 100 * run.Number("accuracy"); }
double MaxRms(const Frame& run) { return UnlessDiverged(run, "max_rms"); }
double ChangeRms(const Frame& run) { return UnlessDiverged(run, "change_max_rms"); }

constexpr double kFewestSpikes = 0.5;  // per run
Margin SpikeMargin() {
  return {kFewestSpikes,
          "loss spikes per run",
          "The paper counts 15 spikes in its runs of a model: several per run."};
}
Margin AccuracyMargin(double value) {
  return {value, "percentage points", "What the paper's figures resolve."};
}
// Returns the margin of most claims about an outcome.
Margin MarginOf(Outcome outcome) {
  if (outcome == SpikesOf) return SpikeMargin();
  return outcome == Accuracy ? AccuracyMargin(1) : LossMargin("nats");
}
constexpr const char* kGuess =
    "; a run that diverged or ends above the loss of a guess counts as a guess";

// Leaves the claim out if what the paper speaks of does not occur in such a run.
Evidence IfSpikesOccur(Evidence evidence, const std::vector<Frame>& arms) {
  double means[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    arms[i].ForEach([&](const Frame& run) { means[i] += SpikesOf(run); });
    means[i] /= static_cast<double>(arms[i].Size());
  }
  if (std::max(means[0], means[1]) >= kFewestSpikes) return evidence;
  return LeftOutBecause(
      fmt::format("{:.2g} and {:.2g} loss spikes per run, expected {} or more in one of the arms",
                  means[0],
                  means[1],
                  kFewestSpikes));
}

// Compares arms with each other. The residual is pooled over them.
Evidence Compare(const Results& results,
                 const ClaimRow& claim,
                 const std::vector<ArmContrast>& contrasts) {
  const Outcome outcome = *claim.outcome.target<Outcome>();
  const Frame runs = results.Of("runs");
  std::vector<Arm> arms;
  std::vector<Frame> rows;
  double parameters = 0;
  for (const ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) {
      if (arm[kModel] == kStudent && (outcome == Loss || outcome == Accuracy)) {
        return NotTestedBecause(
            "out of reach: a student has squared errors, neither nats nor accuracy");
      }
      rows.push_back(results.OfArm(runs, arm));
      if (rows.back().Empty()) {
        return NotTestedBecause("was not trained: " +
                                ArmText(results.study, arm, results.study.arm_text));
      }
      parameters = std::max(parameters, rows.back().Number("parameters"));
      arms.push_back(arm);
    }
  }
  const auto collapsed = [](const Frame& arm) { return arm.Mean("collapsed") > 0.5; };
  if (outcome == Loss && std::ranges::all_of(rows, collapsed)) {
    return LeftOutBecause("most runs of each arm collapsed");
  }
  const Frame pool =
      runs.Where([&](const Frame& run) { return std::ranges::count(arms, ArmOfRow(run)) > 0; });
  Evidence evidence = study::CompareArms(results, pool, contrasts, outcome);
  evidence.parameters = parameters;
  return outcome == SpikesOf ? IfSpikesOccur(std::move(evidence), rows) : evidence;
}

// ---- arms, from the centre

Pick AtBeta2(std::string (*beta2)(const Settings&)) { return {.axis = "beta2", .of = beta2}; }

// An axis of accelerations.
struct Acceleration {
  const char* name;    // of the axis and of its claims
  const char* option;  // list of other values
  Place place;
  const char* figure;
  const char* text;

  Pick Least() const { return At(true); }
  Pick Most() const { return At(false); }
  // Returns why there is none; "" if there is.
  std::string WhyNone(const Results& results) const {
    const auto values = ValuesAlong(results.settings, place, option);
    if (PlaceOf(place, values.front()) != PlaceOf(place, values.back())) return "";
    return fmt::format("there is one {} (--{})", text, option);
  }

 private:
  Pick At(bool least) const {
    return {.axis = name, .of = [=, axis = *this](const Settings& settings) {
              const auto values = ValuesAlong(settings, axis.place, axis.option);
              return least ? values.front() : values.back();
            }};
  }
};
constexpr Acceleration kAccelerations[] = {{"size", "sizes", kSize, "figure-3", "model size"},
                                           {"batch", "batches", kBatch, "figure-12", "batch size"},
                                           {"lr", "lrs", kLr, "figure-13", "learning rate"}};

// ---- rows

std::vector<std::pair<Picks, double>> Gap(Picks arm, Picks reference) {
  return {{std::move(arm), 1}, {std::move(reference), -1}};
}

std::string LeastBeta2(const Settings& settings) {
  return std::ranges::min(
      settings.GetList("beta2"), {}, [](const auto& text) { return std::stod(text); });
}

std::string WhyNoLowerBeta2(const Results& results) {
  const bool lower = std::stod(LeastBeta2(results.settings)) < std::stod(Low(results.settings));
  return lower ? "" : "--beta2 has no lower value";
}
std::string WhyNoOtherRate(const Results& results) { return kAccelerations[2].WhyNone(results); }

void AddAccelerations(std::vector<ClaimRow>& claims) {
  // clang-format off
  for (const Acceleration& axis : kAccelerations) {
    claims.push_back(
        {.name = fmt::format("{}-brings-spikes", axis.name), .items = {axis.figure},
         .statement = fmt::format("Loss spikes increase with {} (Section 3.3).", axis.text),
         .contrast = fmt::format("loss spikes per run at the largest {} minus at the smallest, AdamW "
                                 "at the first of --axis-beta2", axis.text),
         .arms = Gap({AtBeta2(High), axis.Most()}, {AtBeta2(High), axis.Least()}), .outcome = SpikesOf,
         .obstacle = [&axis](const Results& results) { return axis.WhyNone(results); }});
  }
  for (const Acceleration& axis : kAccelerations) {
    claims.push_back(
        {.name = fmt::format("{}-beta2-mitigates", axis.name), .items = {axis.figure},
         .statement = fmt::format("\"Reducing AdamW beta2 from its default in PyTorch of 0.999 mitigates "
                                  "loss spikes\" at a large {} (Section 3.3).", axis.text),
         .contrast = fmt::format("loss spikes per run at the second of --axis-beta2 minus at the first, "
                                 "AdamW at the largest {}", axis.text),
         .side = -1,
         .arms = Gap({AtBeta2(Low), axis.Most()}, {AtBeta2(High), axis.Most()}), .outcome = SpikesOf,
         .obstacle = [&axis](const Results& results) { return axis.WhyNone(results); }});
  }
  // clang-format on
}

std::vector<ClaimRow> Beta2Rows() {
  const Pick rate = kAccelerations[2].Most();
  return {
      // clang-format off
      {.name = "low-beta2-slows", .items = {"figure-3", "figure-12", "figure-13"},
       .statement = "\"Reducing beta2 too much slows training\" (Figures 3, 12, 13).",
       .contrast = "valid_loss at the smallest of --beta2 minus at the second of --axis-beta2, AdamW, "
                   "centre",
       .arms = Gap({AtBeta2(LeastBeta2)}, {AtBeta2(Low)}), .outcome = Loss, .obstacle = WhyNoLowerBeta2},
      {.name = "high-beta2-costs", .items = {"figure-4", "figure-3"},
       .statement = "Loss spikes \"slow learning as recovery time is required\" (Section 3.4): "
                    "beta2 = 0.999 ends at a higher loss than a lower beta2.",
       .contrast = "valid_loss at the first of --axis-beta2 minus at the second, AdamW, centre",
       .arms = Gap({AtBeta2(High)}, {AtBeta2(Low)}), .outcome = Loss},
      {.name = "high-beta2-costs-at-large-lr", .items = {"figure-13"},
       .statement = "Loss spikes \"slow learning\" (Section 3.4), and a larger learning rate brings more "
                    "of them: there beta2 = 0.999 ends at a higher loss than a lower beta2.",
       .contrast = "valid_loss at the first of --axis-beta2 minus at the second, AdamW, largest of --lrs",
       .primary = false, .arms = Gap({AtBeta2(High), rate}, {AtBeta2(Low), rate}), .outcome = Loss,
       .obstacle = WhyNoOtherRate},
      {.name = "rms-lower-at-low-beta2", .items = {"figure-4"},
       .statement = "\"For lower beta2, RMS_t does not deviate far from 1\" (Figure 4).",
       .contrast = "max_rms of the patch embedding at the second of --axis-beta2 minus at the first, "
                   "AdamW, centre",
       .side = -1,
       .margin = Margin{0.5, "of RMS_t", "A spike is 1.3 above the value of an estimator that is right."},
       .arms = Gap({AtBeta2(Low)}, {AtBeta2(High)}), .outcome = MaxRms},
      // clang-format on
  };
}

// ---- remedies, at the first of --optimizer-beta2

std::string WhyNoRemedyBeta2(const Results& results) {
  return RemedyBeta2(results.settings).empty() ? "there is no beta2 (--optimizer-beta2)" : "";
}

std::vector<std::pair<Picks, double>> Optimizers(const std::string& one, const std::string& other) {
  const Pick beta2 = AtBeta2(RemedyBeta2);
  return Gap({beta2, {"optimizer", one}}, {beta2, {"optimizer", other}});
}

Evidence SchedulesAgainstConstant(const Results& results) {
  const Settings& settings = results.settings;
  std::vector<ArmContrast> contrasts;
  for (const std::string& schedule : SchedulesOf(settings)) {
    contrasts.push_back(
        {{Centre(settings, schedule), 1}, {Centre(settings, RemedyBeta2(settings)), -1}});
  }
  if (contrasts.empty()) return NotTestedBecause("there is no schedule (--lambdas)");
  ClaimRow claim;
  claim.outcome = Outcome(Accuracy);
  return Compare(results, claim, contrasts);
}

// The better of the two rates of Lion.
Evidence LionAgainstAdamW(const Results& results) {
  const Arm adamw = Centre(results.settings, RemedyBeta2(results.settings));
  Arm best = With(adamw, kOptimizer, "lion:3");
  double least = kInfinity;
  for (const char* const lion : {"lion:3", "lion:10"}) {
    const Arm arm = With(adamw, kOptimizer, lion);
    const Frame runs = results.OfArm(results.Of("runs"), arm);
    if (runs.Empty()) continue;
    std::vector<double> losses;
    runs.ForEach([&](const Frame& run) { losses.push_back(Loss(run)); });
    const double mean = MeanOf(losses).value;
    if (mean < least) best = arm;
    least = std::min(least, mean);
  }
  ClaimRow claim;
  claim.outcome = Outcome(Loss);
  return Compare(results, claim, {{{best, 1}, {adamw, -1}}});
}

std::vector<ClaimRow> RemedyRows() {
  std::vector<ClaimRow> claims = {
      // clang-format off
      {.name = "update-clipping-mitigates", .items = {"figure-5"},
       .statement = "\"Adding update clipping to AdamW mitigates loss spikes\" (Figure 5).",
       .contrast = "loss spikes per run of stable-adamw minus of adamw", .side = -1,
       .arms = Optimizers(kStable, kAdamW), .outcome = SpikesOf},
      {.name = "update-clipping-lowers-loss", .items = {"figure-5"},
       .statement = "With update clipping training ends at a lower loss than with AdamW (Figure 5).",
       .contrast = "valid_loss of stable-adamw minus of adamw", .side = -1, .primary = false,
       .arms = Optimizers(kStable, kAdamW), .outcome = Loss},
      {.name = "update-clipping-beats-gradient-clipping", .items = {"figure-5"},
       .statement = "Update clipping \"outperforms other interventions such as gradient clipping with "
                    "norm 1\" in zero-shot accuracy (Figure 5).",
       .contrast = "accuracy of stable-adamw minus of clip-1",
       .arms = Optimizers(kStable, "clip-1"), .outcome = Accuracy},
      {.name = "clip-2-spikes-more", .items = {"figure-5"},
       .statement = "\"We observed instability when trying 2 instead of 1\" as the norm of gradient "
                    "clipping (Section 3.5, footnote 3).",
       .contrast = "loss spikes per run of clip-2 minus of clip-1", .primary = false,
       .arms = Optimizers("clip-2", "clip-1"), .outcome = SpikesOf},
      {.name = "schedule-does-not-help", .items = {"figure-14", "appendix-f.1"},
       .statement = "A schedule beta2 = 1 - t^-lambda \"does not improve accuracy in our setting\" "
                    "(Figure 14).",
       .contrast = "accuracy with each schedule of --lambdas minus with the first of --optimizer-beta2, "
                   "AdamW, centre; the margin is negative: supported if no schedule is better by a point",
       .side = -1, .margin = AccuracyMargin(-1), .evidence = SchedulesAgainstConstant},
      // The same runs choose the rate and judge it.
      {.name = "lion-beats-adamw", .items = {"appendix-f.1"},
       .statement = "\"We observe that Lion outperforms AdamW at small scale\" (Appendix F.1).",
       .contrast = "valid_loss of lion:3 or lion:10, whichever has the lower mean, minus of adamw",
       .side = -1, .primary = false,
       .arms = Optimizers("lion:3", kAdamW), .outcome = Loss, .evidence = LionAgainstAdamW},
      {.name = "rms-of-moment-is-worse", .items = {"appendix-f.1"},
       .statement = "With v_t^2 in place of g_t^2 in RMS_t the paper \"found the performance worse\" "
                    "(Appendix F.1).",
       .contrast = "valid_loss of stable-adamw:moment minus of stable-adamw",
       .arms = Optimizers("stable-adamw:moment", kStable), .outcome = Loss},
      // clang-format on
  };
  for (const char* const name : {"decay", "added", "previous", "update", "global"}) {
    const std::string variant = fmt::format("stable-adamw:{}", name);
    claims.push_back({.name = fmt::format("variant-{}-matches", name),
                      .items = {"figure-5"},
                      .statement = fmt::format(
                          "Not in the paper: {} differs from Algorithm 2 only on paper.", variant),
                      .contrast = fmt::format("valid_loss of {} minus of stable-adamw", variant),
                      .kind = ClaimKind::kEquivalence,
                      .primary = false,
                      .arms = Optimizers(variant, kStable),
                      .outcome = Loss});
  }
  for (ClaimRow& claim : claims) {
    if (!claim.outcome) continue;
    claim.contrast += ", at the first of --optimizer-beta2, centre";
    claim.obstacle = WhyNoRemedyBeta2;
  }
  return claims;
}

// ---- changes

// Returns the first change of --changes that begins so; "" if there is none.
std::string ChangeOf(const Settings& settings, const std::string& prefix) {
  for (const std::string& change : settings.GetListOrNone("changes")) {
    if (change.starts_with(prefix)) return change;
  }
  return "";
}

ClaimRow Planted(const char* kind, ClaimKind claim_kind, const char* name, const char* statement) {
  const std::string prefix = fmt::format("{}:", kind);
  const Pick change = {.axis = "data",
                       .of = [=](const Settings& settings) { return ChangeOf(settings, prefix); }};
  const auto obstacle = [=](const Results& results) -> std::string {
    if (ChangeStep(results.settings) < kBeforeChange) {
      return fmt::format("--change-step is below {}", kBeforeChange);
    }
    if (results.settings.Get("changes").empty()) return "there is no change (--changes)";
    return ChangeOf(results.settings, prefix).empty() ? "--changes has no " + prefix + "F" : "";
  };
  return {.name = name,
          .items = {"figure-4"},
          .statement = statement,
          .contrast = fmt::format("largest RMS_t of the patch embedding in the 50 steps from "
                                  "--change-step on, {}:F minus steady, adamw, first of "
                                  "--axis-beta2; a planted change, no claim about frequency",
                                  kind),
          .kind = claim_kind,
          .primary = false,
          .margin = Margin{1.3, "of RMS_t", "From 1 to the paper's 2.3."},
          .arms = Gap({AtBeta2(High), change}, {AtBeta2(High)}),
          .outcome = ChangeRms,
          .obstacle = obstacle};
}

std::vector<ClaimRow> ChangeRows() {
  const auto statement = [](const char* remedy) {
    return fmt::format(
        "Not in the paper, which says that the estimator is out of date when \"the learning signal "
        "changes\": after a change of the data, {} ends at a lower loss.",
        remedy);
  };
  const Pick changed = {"data", kNewData};
  return {
      // clang-format off
      {.name = "low-beta2-helps-on-new-data", .items = {"figure-4"},
       .statement = statement("a lower beta2"),
       .contrast = "valid_loss at the second of --axis-beta2 minus at the first, adamw, new data",
       .side = -1, .primary = false,
       .arms = Gap({AtBeta2(Low), changed}, {AtBeta2(High), changed}), .outcome = Loss},
      {.name = "update-clipping-helps-on-new-data", .items = {"figure-4"},
       .statement = statement("update clipping"),
       .contrast = "valid_loss of stable-adamw minus of adamw, new data, first of --axis-beta2",
       .side = -1, .primary = false,
       .arms = Gap({AtBeta2(High), changed, {"optimizer", kStable}}, {AtBeta2(High), changed}),
       .outcome = Loss},
      // clang-format on
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
              "A jump of the images' contrast puts the second moment of the patch embedding out of "
              "date (Section 3.4).")};
}

}  // namespace

double Loss(const Frame& run) {
  return std::min(UnlessDiverged(run, "valid_loss"), run.Number("chance_loss"));
}

study::Claims CommonClaims() {
  return {.scale =
              "The paper: CLIP ViT-Base to ViT-Huge, 20,000 steps of up to 16,384 images, one "
              "seed. A run states its own size.",
          .compare = Compare};
}

std::vector<ClaimRow> ClaimRows() {
  std::vector<ClaimRow> claims;
  AddAccelerations(claims);
  for (const auto& rows : {Beta2Rows(), PredictionRows(), RemedyRows(), ChangeRows()}) {
    claims.insert(claims.end(), rows.begin(), rows.end());
  }
  for (ClaimRow& claim : claims) {
    for (std::string& item : claim.items) item.insert(0, "switchback/");
    const Outcome* const outcome = claim.outcome.target<Outcome>();
    if (outcome == nullptr) continue;
    if (!claim.margin) claim.margin = MarginOf(*outcome);
    if (*outcome == Loss) claim.contrast += kGuess;
  }
  return claims;
}

}  // namespace numsim::experiments::loss_spikes
