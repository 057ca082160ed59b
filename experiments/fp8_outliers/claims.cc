// The claims of [Fishman] about outliers and Smooth-SwiGLU, and the evidence of a run.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/fp8_outliers/identity.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments::fp8_outliers {
namespace {

constexpr const char* kScale =
    "The paper: Llama 2 7B, outliers that come by themselves after 2e11 tokens, one seed. Here they are "
    "planted, and a run states its own size.";

Margin Steps() {
  return {.value = 0.5, .unit = "steps", .justification = "One step in every other run."};
}

ClaimSpec Claim(const std::string& name, std::vector<std::string> items, std::string statement) {
  ClaimSpec claim;
  claim.id = "fp8-outliers/" + name;
  for (std::string& item : items) claim.items.push_back("fishman/" + std::move(item));
  claim.statement = std::move(statement);
  claim.scale = kScale;
  return claim;
}

Frame RunsOf(const Tables& tables, std::string_view plant, const std::string& lr) {
  return Frame(tables.at(std::string(kRunsTable)))
      .Where("plant", std::string(plant))
      .Where("lr", lr);
}

// Returns the text of the plant of that kind, the one with the largest size; none: it was left out.
std::optional<std::string> PlantText(const Settings& settings, std::string_view kind) {
  if (kind == kScratch) return std::string(kind);
  const std::vector<std::string> plants = PlantsOf(settings, kind);
  return plants.empty() ? std::nullopt : std::optional(plants.front());
}

// Compares two recipes of a plant by a column. A run that diverged has the loss of its start.
Evidence Compare(const Settings& settings,
                 const Tables& tables,
                 std::string_view plant,
                 const std::string& recipe,
                 const std::string& reference,
                 const std::string& column) {
  const std::optional<std::string> text = PlantText(settings, plant);
  if (!text.has_value()) return NotTestedBecause(fmt::format("--plants leaves out {}", plant));
  // The two recipes alone: one that fails scatters far more than the others.
  const Frame runs = RunsOf(tables, *text, settings.Get("lr")).Where([&](const Frame& run) {
    return run.Text("recipe") == recipe || run.Text("recipe") == reference;
  });
  for (const std::string& needed : {recipe, reference}) {
    if (runs.Where("recipe", needed).Empty()) {
      return NotTestedBecause(fmt::format("no {} with recipe {}", plant, needed));
    }
  }
  Evidence evidence;
  evidence.parameters = runs.Number("parameters");
  evidence.outcomes = OutcomesOf(runs, {"recipe"}, [&](const Frame& run) {
    const bool diverged = run.Text("status") != "finished";
    return run.Number(diverged && column == "valid_loss" ? "start_loss" : column);
  });
  evidence.contrasts = {Gap(recipe, reference)};
  return evidence;
}

struct Spec {
  const char* name;
  std::vector<std::string> items;
  std::string statement;
  const char* plant;
  const char* recipe;
  const char* reference;
  const char* column;
  ClaimKind kind = ClaimKind::kDifference;
  int side = 1;
  bool primary = true;
};

ClaimSpec Comparison(const Spec& spec) {
  ClaimSpec claim = Claim(spec.name, spec.items, spec.statement);
  claim.kind = spec.kind;
  claim.side = spec.side;
  claim.primary = spec.primary;
  claim.margin = std::string_view(spec.column) == "valid_loss" ? LossMargin("nats") : Steps();
  claim.contrast =
      fmt::format("{} of {} minus that of {}, {}{}",
                  spec.column,
                  spec.recipe,
                  spec.reference,
                  spec.plant,
                  std::string_view(spec.plant) == kScratch ? "" : " of the largest size");
  claim.evidence = [spec](const Settings& settings, const Tables& tables) {
    return Compare(settings, tables, spec.plant, spec.recipe, spec.reference, spec.column);
  };
  return claim;
}

// Whether the plants leave bf16 as it is: otherwise the comparisons are no evidence.
ClaimSpec PlantsSpareBf16(const char* plant) {
  ClaimSpec claim =
      Claim(fmt::format("{}-spares-bf16", plant),
            {"figure-2"},
            fmt::format("BF16 training is not harmed by the outliers that FP8 fails at "
                        "(Section 6): here, by the plant `{}`.",
                        plant));
  claim.kind = ClaimKind::kEquivalence;
  claim.margin = LossMargin("nats");
  claim.contrast = fmt::format("valid_loss of bf16, {}, minus that of bf16, none", plant);
  claim.evidence = [plant = std::string(plant)](const Settings& settings, const Tables& tables) {
    const Frame runs = Frame(tables.at(std::string(kRunsTable)))
                           .Where("recipe", std::string("bf16"))
                           .Where("lr", settings.Get("lr"))
                           .Where([](const Frame& run) { return run.Text("plant") != kScratch; });
    const std::optional<std::string> text = PlantText(settings, plant);
    if (!text.has_value() || runs.Where("plant", std::string(kNone)).Empty()) {
      return NotTestedBecause(fmt::format("--plants leaves out none or {}", plant));
    }
    Evidence evidence;
    evidence.parameters = runs.Number("parameters");
    evidence.outcomes =
        OutcomesOf(runs, {"plant"}, [](const Frame& run) { return run.Number("valid_loss"); });
    evidence.contrasts = {Gap(*text, std::string(kNone))};
    return evidence;
  };
  return claim;
}

// Figures 10 and 11, at each learning rate.
ClaimSpec SmoothLowersBf16() {
  ClaimSpec claim = Claim(
      "smooth-lowers-bf16-loss",
      {"figure-10", "figure-11"},
      "Smooth-SwiGLU \"enables training to lower loss values, especially when using a larger LR\" "
      "in BF16 (Appendix A.3).");
  claim.side = -1;
  claim.margin = LossMargin("nats");
  claim.contrast = "valid_loss of bf16-smooth-token minus that of bf16, at each of --scratch-lr";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const Frame runs =
        Frame(tables.at(std::string(kRunsTable))).Where("plant", std::string(kScratch));
    Evidence evidence;
    evidence.outcomes = OutcomesOf(runs, {"recipe", "lr"}, [](const Frame& run) {
      return run.Number(run.Text("status") == "finished" ? "valid_loss" : "start_loss");
    });
    for (const std::string& lr : settings.GetList("scratch-lr")) {
      const Frame rate = runs.Where("lr", lr);
      const bool both = !rate.Where("recipe", std::string("bf16-smooth-token")).Empty() &&
                        !rate.Where("recipe", std::string("bf16")).Empty();
      if (both) evidence.contrasts.push_back(Gap("bf16-smooth-token / " + lr, "bf16 / " + lr));
    }
    if (evidence.contrasts.empty()) {
      return NotTestedBecause("--scratch-bf16 leaves out bf16 or bf16-smooth-token");
    }
    evidence.parameters = runs.Number("parameters");
    return evidence;
  };
  return claim;
}

ClaimSpec SmoothPerChannelChangesBf16() {
  ClaimSpec claim = Claim(
      "smooth-per-channel-changes-bf16",
      {"figure-10", "figure-11", "equation-3"},
      "Smooth-SwiGLU \"allows a smoother training curve even with BF16 training\" (Appendix A.3): "
      "Equation 3 with scales that are powers of two changes a BF16 training at all.");
  claim.kind = ClaimKind::kExact;
  claim.scale = "Any.";
  claim.contrast = "valid_loss of bf16-smooth, scratch, differs from that of bf16 in some seed";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    const Frame runs = RunsOf(tables, kScratch, settings.Get("lr"));
    const SeedValues smooth =
        runs.Where("recipe", std::string("bf16-smooth")).OverSeeds("valid_loss");
    const SeedValues plain = runs.Where("recipe", std::string("bf16")).OverSeeds("valid_loss");
    if (smooth.empty() || plain.empty()) {
      return NotTestedBecause("--scratch leaves out bf16 or bf16-smooth");
    }
    Evidence evidence;
    size_t equal = 0;
    for (const auto& [seed, loss] : smooth) {
      const auto other = plain.find(seed);
      equal += other != plain.end() && other->second == loss ? 1 : 0;
    }
    evidence.exact = equal < smooth.size();
    evidence.measured = fmt::format("{} of {} seeds end in the same loss", equal, smooth.size());
    return evidence;
  };
  return claim;
}

constexpr double kRounding = 1e-12;  // of float64, over some thousand operations

ClaimSpec SmoothIsTheIdentity() {
  ClaimSpec claim =
      Claim("smooth-is-the-identity",
            {"equation-3", "figure-4"},
            "Smooth-SwiGLU keeps \"the overall function of the SwiGLU activation\" (Section "
            "4.4), and its gradients: in exact arithmetic it is the identity, so that a "
            "training in BF16 differs by rounding alone.");
  claim.kind = ClaimKind::kExact;
  claim.scale = "Any: a llama of 2 blocks of width 32 in float64.";
  claim.contrast = "relative difference of all gradients, per token against SwiGLU: below 1e-12";
  claim.evidence = [](const Settings& /*settings*/, const Tables& /*tables*/) {
    Evidence evidence;
    const double difference = GradientDifference();
    evidence.exact = difference < kRounding;
    evidence.measured = fmt::format("{:.2g}", difference);
    return evidence;
  };
  return claim;
}

ClaimSpec AboutMerging(const char* name, const char* statement, const char* contrast) {
  ClaimSpec claim = Claim(name,
                          {"equation-3", "figure-4"},
                          std::string("\"The scaling factors can be merged into the weights of the "
                                      "first and third linear layers\" ") +
                              statement);
  claim.kind = ClaimKind::kExact;
  claim.scale = "Any: a llama of 2 blocks of width 32; GEMMs accumulate in fp32, in order.";
  claim.contrast = contrast;
  return claim;
}

// The logits of a model before and after its scales are merged into its weights.
Evidence MergedLogits(const char* recipe) {
  const auto [logits, different, relative] = MergeScales(recipe);
  Evidence evidence;
  evidence.exact = different == 0;
  evidence.measured = fmt::format(
      "{} of {} logits differ, relative difference {:.2g}", different, logits, relative);
  return evidence;
}

ClaimSpec MergingIsFreeInBf16() {
  ClaimSpec claim =
      AboutMerging("merging-is-free-in-bf16",
                   "(Section 4.4): with scales that are powers of two, the merged model "
                   "gives the same bits in bf16.",
                   "logits with other bits, recipe bf16: none");
  claim.evidence = [](const Settings& /*settings*/, const Tables& /*tables*/) {
    return MergedLogits("bf16");
  };
  return claim;
}

// Nobody claims the same bits in FP8: the paper quantises the merged weights anew.
ClaimSpec MergingHasNoEffectInFp8() {
  ClaimSpec claim = AboutMerging(
      "merging-is-free-in-fp8",
      "(Section 4.4), \"without any effect on the inference\" (Section 7), in FP8.",
      "loss of the merged model minus that with Smooth-SwiGLU, in FP8 with a scale per tensor");
  claim.evidence = [](const Settings& /*settings*/, const Tables& /*tables*/) {
    Evidence evidence = MergedLogits("fp8-current");
    evidence.exact.reset();
    evidence.not_tested =
        "no run measures the loss; the merged weights are rounded anew, so that logits differ";
    return evidence;
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  constexpr ClaimKind kMatches = ClaimKind::kEquivalence;
  std::vector<ClaimSpec> claims = {
      PlantsSpareBf16("once"), PlantsSpareBf16("every"), PlantsSpareBf16("weights")};
  const std::vector<Spec> specs = {
      {"outlier-saturates-delayed",
       {"figure-1"},
       "\"The sudden appearance of these outliers [...] disrupts the statistical assumptions underlying "
       "FP8 training\" with delayed scaling (Section 3): they saturate, as they do not under current "
       "scaling.",
       "once",
       "te-max",
       "te-current",
       "saturated_steps"},
      {"long-history-loses-the-rest",
       {"figure-1"},
       "Delayed scaling is \"vulnerable to outliers\" (Section 2): one outlier in a long history costs "
       "the steps after it, as it does not with the most recent maximum.",
       "once",
       "te-max",
       "te-recent",
       "flushed_steps"},
      {"delayed-costs-loss",
       {"figure-2"},
       "Outliers make FP8 training with delayed scaling lose against BF16 (Figure 2a).",
       "once",
       "te-max",
       "bf16",
       "valid_loss"},
      {"growing-weights-cost-loss",
       {"figure-2"},
       "The growth of aligned w1 and w2 makes FP8 training lose against BF16 (Figure 2).",
       "weights",
       "te-max",
       "bf16",
       "valid_loss"},
      {"w3-in-bf16-restores",
       {"figure-3"},
       "Without quantisation of the input of w3, FP8 training converges as BF16 (Figure 3).",
       "once",
       "w3-bf16",
       "bf16",
       "valid_loss",
       kMatches},
      {"smooth-restores",
       {"figure-4", "equation-3", "figure-6"},
       "Smooth-SwiGLU per channel gives FP8 training the loss of BF16 under outliers (Section 4.4, "
       "Figure 6).",
       "once",
       "smooth",
       "bf16",
       "valid_loss",
       kMatches},
      {"code-smooth-restores",
       {"figure-4"},
       "The same for the Smooth-SwiGLU of the paper's code, per token.",
       "once",
       "fishman-smooth",
       "bf16",
       "valid_loss",
       kMatches,
       1,
       false},
      {"smooth-prevents-bad-steps",
       {"figure-4", "equation-3"},
       "Smooth-SwiGLU \"prevents outliers in the quantization of the input to the last linear layer\" "
       "(Section 4.4): fewer bad steps than delayed scaling alone.",
       "every",
       "smooth",
       "te-max",
       "bad_steps",
       ClaimKind::kDifference,
       -1},
      {"code-smooth-prevents-bad-steps",
       {"figure-4"},
       "The same for the Smooth-SwiGLU of the paper's code, per token.",
       "every",
       "smooth-token",
       "te-max",
       "bad_steps",
       ClaimKind::kDifference,
       -1,
       false},
      {"full-fp8-matches",
       {"figure-6"},
       "FP8 training with Smooth-SwiGLU is on par with BF16 (Figure 6), by the paper's code.",
       "scratch",
       "fishman-smooth",
       "bf16",
       "valid_loss",
       kMatches},
      {"full-fp8-by-equation-3-matches",
       {"figure-6", "equation-3"},
       "The same by Transformer Engine's delayed scaling and Equation 3.",
       "scratch",
       "smooth",
       "bf16",
       "valid_loss",
       kMatches},
      {"gelu-needs-nothing",
       {"figure-12"},
       "FP8 training without SwiGLU converges as BF16 (Figure 12).",
       "scratch",
       "te-max-gelu",
       "bf16-gelu",
       "valid_loss",
       kMatches},
  };
  for (const Spec& spec : specs) claims.push_back(Comparison(spec));
  claims.push_back(SmoothLowersBf16());
  claims.push_back(SmoothPerChannelChangesBf16());
  claims.push_back(SmoothIsTheIdentity());
  claims.push_back(MergingIsFreeInBf16());
  claims.push_back(MergingHasNoEffectInFp8());
  return claims;
}

}  // namespace numsim::experiments::fp8_outliers
