// The claims of [SwitchBack], section 2.3 and Figure 2, about interventions for tensor-wise fp8, and
// the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::fp8_interventions {
namespace {

constexpr const char* kFp8 = "e4m3fn/e5m2";
constexpr const char* kPoorest = "e2m3";  // of the ladder
constexpr const char *kNone = "none", *kLayerScale = "layer-scale";
constexpr double kDivergesAbove = 420e6;  // parameters
constexpr const char* kScale =
    "The paper: CLIP ViT-Large, 20,000 steps of 16,384 images. A run states its own size.";

std::string Arm(const std::string& intervention, const std::string& format) {
  return intervention + " / " + format;
}

double ParametersOf(const Settings& settings) {
  return ApproximateParameters(ConfigOf(settings, {}, kBaseline, settings.seed));
}

// The largest share of what bf16 learns that a stress may take from it.
constexpr double kMostHarm = 0.1;

// Returns why a run with a stress is no evidence; "" if it is, and for a run without a stress.
std::string WhyNoEvidence(const Settings& settings, const Frame& final_rows) {
  if (StressOf(settings).empty()) return "";
  const std::string& chosen_on = settings.Get("stress-chosen-on");
  if (chosen_on.empty()) {
    return "no evidence: --stress-chosen-on does not state the seeds on which the stress was chosen";
  }
  const auto first = static_cast<int64_t>(settings.seed);
  for (const int64_t seed :
       settings.GetIntegers("stress-chosen-on", 0, std::numeric_limits<int64_t>::max())) {
    if (seed < first || seed >= first + settings.seeds) continue;
    return fmt::format("no evidence: the stress was chosen on seed {}, which the run reports",
                       seed);
  }
  const Frame without = Select(final_rows, kUnstressed.Text(), kBaseline.Text());
  const Frame with = Select(final_rows, kNone, kBaseline.Text());
  // Learning counts from the loss of a guess, which an untrained CLIP exceeds.
  const double start = std::min(without.Mean("start_loss"), without.Mean("chance_loss"));
  const double learned = start - without.Mean("valid_loss");
  if (!(learned > 0)) {
    return "no evidence: bf16 without the stress diverged, learned nothing or was not trained";
  }
  const double harm = (with.Mean("valid_loss") - without.Mean("valid_loss")) / learned;
  if (harm <= kMostHarm) return "";
  return fmt::format(
      "no evidence: the stress takes {:.3g} % of what bf16 learns without it, more "
      "than {:g} %",
      100 * harm,
      100 * kMostHarm);
}

// Returns why a run is not the paper's setting in which fp8 diverges; "" if it is.
std::string OutOfReach(const Settings& settings) {
  if (std::string stress = StressOf(settings); !stress.empty()) return stress;
  const double parameters = ParametersOf(settings);
  if (settings.Get("model") == "clip" && parameters > kDivergesAbove) return "";
  return fmt::format("out of reach: {} with about {:.3g} million parameters",
                     settings.Get("model"),
                     parameters / 1e6);
}

// Returns whether bf16 learnt in all seeds with these interventions.
bool Learned(const Frame& final_rows, const std::vector<std::string>& interventions) {
  for (const std::string& intervention : interventions) {
    const Frame rows = Select(final_rows, intervention, kBaseline.Text());
    if (rows.Empty() || !rows.Where([](const Frame& row) { return Failed(row); }).Empty()) {
      return false;
    }
  }
  return true;
}

// Compares trainings of a format and of bf16. Other formats are left out: trainings that have
// collapsed do not scatter, and would make the pooled variance too small.
Evidence Compare(const Settings& settings,
                 const Tables& tables,
                 const std::string& format,
                 const std::vector<std::string>& interventions,
                 Contrast contrast) {
  const Frame rows = Frame(tables.at(std::string(kFinalTable))).Where([&](const Frame& row) {
    return row.Text("format") == format || row.Text("format") == kBaseline.Text();
  });
  if (std::string why = WhyNoEvidence(settings, rows); !why.empty()) return NotTestedBecause(why);
  const Frame judged =
      rows.Where([](const Frame& row) { return row.Text("intervention") != kUnstressed.Text(); });
  if (!Learned(judged, interventions)) {
    return NotTestedBecause("bf16 itself fails or was not trained with " +
                            fmt::format("{}", fmt::join(interventions, ", ")));
  }
  Evidence evidence;
  evidence.outcomes = OutcomesOf(judged, {"intervention", "format"}, [](const Frame& row) {
    return row.Text("status") == "finished" ? row.Number("valid_loss") : kInfinity;
  });
  evidence.contrasts = {std::move(contrast)};
  evidence.diverged_value = judged.Mean("start_loss");
  evidence.parameters = ParametersOf(settings);
  evidence.measured = StressOf(settings);
  return evidence;
}

ClaimSpec Claim(std::string name, std::string statement) {
  ClaimSpec claim;
  claim.id = "fp8-interventions/" + std::move(name);
  claim.items = {"switchback/figure-2", "switchback/section-2.3"};
  claim.statement = std::move(statement);
  claim.margin = LossMargin("nats");
  claim.diverged = Diverged::kAsValue;
  claim.scale = kScale;
  return claim;
}

// ---- primary: in the paper's setting

ClaimSpec Diverges(const std::string& intervention, std::string statement) {
  ClaimSpec claim = Claim(intervention + "-diverges", std::move(statement));
  claim.kind = ClaimKind::kDivergence;
  claim.contrast = fmt::format(
      "share of diverged runs of {} with intervention {}, where bf16 learns", kFp8, intervention);
  claim.margin = {.value = 0.5, .unit = "of the runs", .justification = "More often than not."};
  claim.scale = "The paper: CLIP above 420 million parameters, and so is a run that tests it.";
  claim.evidence = [intervention](const Settings& settings, const Tables& tables) {
    const std::string obstacle = OutOfReach(settings);
    if (!obstacle.empty()) return NotTestedBecause(obstacle);
    return Compare(settings, tables, kFp8, {intervention}, {{Arm(intervention, kFp8), 1}});
  };
  return claim;
}

ClaimSpec LayerScaleTrains() {
  ClaimSpec claim = Claim("layer-scale-trains",
                          "With layer-scale that starts at zero, fp8 \"trains without diverging\" "
                          "where it diverges otherwise (Section 2.3, Figure 2, left).");
  claim.side = -1;
  claim.contrast =
      "valid_loss of e4m3fn/e5m2 with layer-scale minus that without intervention; a training that "
      "diverged has the loss of the start";
  claim.scale = "The paper: CLIP above 420 million parameters, and so is a run that tests it.";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const std::string obstacle = OutOfReach(settings);
    if (!obstacle.empty()) return NotTestedBecause(obstacle);
    return Compare(settings,
                   tables,
                   kFp8,
                   {kNone, kLayerScale},
                   Gap(Arm(kLayerScale, kFp8), Arm(kNone, kFp8)));
  };
  return claim;
}

// Returns the features of bf16 with an intervention, of the tower that is judged.
Frame FeaturesOf(const Tables& tables, const std::string& intervention) {
  const Frame features = tables.at(std::string(kFeaturesTable));
  return Select(features, intervention, kBaseline.Text()).Where("tower", TowerOf(features));
}

double LowestLoss(const Frame& training) {
  double lowest = kInfinity;
  for (const double loss : training.Numbers("valid_loss")) lowest = std::min(lowest, loss);
  return lowest;
}

// Returns log2 of E|x_k| of a training where its validation loss first falls to `loss`, interpolated
// between its records.
double LogMagnitudeAt(const Frame& training, double loss) {
  const std::vector<double> losses = training.Numbers("valid_loss");
  const std::vector<double> magnitudes = training.Numbers("mean_abs_rest");
  const auto log2_of = [&](size_t i) { return Log(magnitudes[i]) / Log(2.0); };
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!(losses[i] <= loss)) continue;
    if (i == 0) return log2_of(0);
    const double share = (losses[i - 1] - loss) / (losses[i - 1] - losses[i]);
    return log2_of(i - 1) + share * (log2_of(i) - log2_of(i - 1));
  }
  return kNaN;
}

// Returns the value for each seed that both frames have.
SeedValues ForBoth(const Frame& a,
                   const Frame& b,
                   const std::function<double(const Frame&, const Frame&)>& value) {
  SeedValues values;
  for (const Frame& training : a.By({"seed"})) {
    const Frame other = b.Where("seed", training.Text("seed"));
    if (!other.Empty()) values[training.Text("seed")] = value(training, other);
  }
  return values;
}

Evidence Doublings(std::string name, const SeedValues& doublings) {
  if (doublings.empty()) {
    return NotTestedBecause("no features of bf16 with these interventions were recorded");
  }
  return AgainstReference(std::move(name), doublings, 0);
}

using FeatureEvidence = std::function<Evidence(const Tables&)>;

ClaimSpec Features(std::string name,
                   std::string statement,
                   std::string contrast,
                   const FeatureEvidence& evidence) {
  ClaimSpec claim = Claim(std::move(name), std::move(statement));
  claim.items = {"switchback/figure-2"};
  claim.contrast =
      std::move(contrast) + ", in powers of two; E|x_k| of bf16, tower of images if there is one";
  claim.diverged = Diverged::kMissing;
  claim.margin = {
      .value = 1, .unit = "doublings", .justification = "It costs a format one of its exponents."};
  claim.evidence = [evidence](const Settings& settings, const Tables& tables) {
    std::string stress = StressOf(settings);
    return stress.empty() ? evidence(tables) : NotTestedBecause(std::move(stress));
  };
  return claim;
}

ClaimSpec FeaturesGrow() {
  return Features(
      "features-grow",
      "\"Without the intervention, the average feature magnitude becomes large for later blocks\" "
      "(Figure 2, right).",
      "last block over first block at the end, no intervention",
      [](const Tables& tables) {
        const Frame end = LastRecords(FeaturesOf(tables, kNone));
        const Frame last = AfterLastBlock(end), first = end.Where("block", 0);
        return Doublings(
            "last over first block", ForBoth(last, first, [](const Frame& a, const Frame& b) {
              return Log(a.Number("mean_abs_rest") / b.Number("mean_abs_rest")) / Log(2.0);
            }));
      });
}

ClaimSpec LayerScaleKeepsFeaturesSmall() {
  return Features(
      "layer-scale-keeps-features-small",
      "\"Zero-init layer scale prevents high feature magnitudes\" (Figure 2, right).",
      "no intervention over layer-scale, last block, at the validation loss that both trainings of "
      "a seed reach",
      [](const Tables& tables) {
        const Frame none = AfterLastBlock(FeaturesOf(tables, kNone));
        const Frame scaled = AfterLastBlock(FeaturesOf(tables, kLayerScale));
        return Doublings("none over layer-scale",
                         ForBoth(none, scaled, [](const Frame& a, const Frame& b) {
                           const double loss = std::max(LowestLoss(a), LowestLoss(b));
                           return LogMagnitudeAt(a, loss) - LogMagnitudeAt(b, loss);
                         }));
      });
}

// ---- exploratory: at any size, and with planted activations

ClaimSpec Behind(const std::string& intervention, const std::string& format) {
  const bool fp8 = format == kFp8;
  ClaimSpec claim = Claim(fmt::format("{}-{}-behind", fp8 ? "fp8" : format, intervention),
                          fmt::format("Tensor-wise {} fails with intervention {}: here in the "
                                      "weaker form that its loss falls behind that of bf16.",
                                      fp8 ? "fp8" : format + " in place of fp8",
                                      intervention));
  claim.primary = false;
  claim.contrast = fmt::format(
      "valid_loss of {} minus that of bf16, both with intervention {}; a training that diverged has "
      "the loss of the start",
      format,
      intervention);
  claim.evidence = [=](const Settings& settings, const Tables& tables) {
    return Compare(settings,
                   tables,
                   format,
                   {intervention},
                   Gap(Arm(intervention, format), Arm(intervention, kBaseline.Text())));
  };
  return claim;
}

ClaimSpec LayerScaleRescuesPoorest() {
  ClaimSpec claim = Claim("layer-scale-rescues-e2m3",
                          "Layer-scale rescues trainings that fail otherwise, here in e2m3.");
  claim.primary = false;
  claim.side = -1;
  claim.contrast = "valid_loss of e2m3 with layer-scale minus that without intervention";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    return Compare(settings,
                   tables,
                   kPoorest,
                   {kNone, kLayerScale},
                   Gap(Arm(kLayerScale, kPoorest), Arm(kNone, kPoorest)));
  };
  return claim;
}

ClaimSpec Remainder() {
  ClaimSpec claim = Claim("remainder-is-layer-scale",
                          "The difference that remains between fp8 with layer-scale and bf16 \"is "
                          "primarily because of layerscale\" (Section 2.3).");
  claim.primary = false;
  claim.contrast = "valid_loss that layer-scale adds to bf16, minus what e4m3fn/e5m2 adds to that";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const std::string bf16 = kBaseline.Text();
    return Compare(
        settings,
        tables,
        kFp8,
        {kNone, kLayerScale},
        {{Arm(kLayerScale, bf16), 2}, {Arm(kNone, bf16), -1}, {Arm(kLayerScale, kFp8), -1}});
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  return {Diverges(kNone,
                   "fp8 with tensor-wise quantisation \"and no further modifications\" \"slowly "
                   "diverges\" (Section 2.3, Figure 2, left)."),
          Diverges("clip", "Adding gradient clipping \"also diverges\" (Section 2.3, Figure 2)."),
          Diverges("qk-norm", "Adding KQ layernorm \"also diverges\" (Section 2.3, Figure 2)."),
          LayerScaleTrains(),
          FeaturesGrow(),
          LayerScaleKeepsFeaturesSmall(),
          Behind(kNone, kFp8),
          Behind("clip", kFp8),
          Behind("qk-norm", kFp8),
          Behind(kNone, kPoorest),
          LayerScaleRescuesPoorest(),
          Remainder()};
}

std::string Notes(const Settings& settings, const Tables& tables) {
  const Frame outcomes = tables.at(std::string(kOutcomesTable));
  double diverged = 0, collapsed = 0;
  for (const double number : outcomes.Numbers("diverged")) diverged += number;
  for (const double number : outcomes.Numbers("collapsed")) collapsed += number;
  const std::string stress = StressOf(settings);
  return fmt::format(
      "{}{}{:g} trainings diverged and {:g} collapsed (their validation loss is less than {:g} % "
      "below that of a model that guesses at random), over all formats and interventions.",
      stress.empty() ? "" : "Everything here is exploratory, ",
      stress.empty() ? "" : stress + ". ",
      diverged,
      collapsed,
      100 * kCollapsed);
}

}  // namespace numsim::experiments::fp8_interventions
