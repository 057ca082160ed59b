// The claims of [SwitchBack], section 2.2 and appendix D, about the accuracy of training with 8-bit
// linear layers.
#include <fmt/format.h>

#include <utility>

#include "experiments/switchback_accuracy/evidence.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

constexpr const char* kScale =
    "The paper: CLIP ViT-Base to ViT-Huge, 20,000 steps of 16,384 images, one seed. A run states its "
    "own size.";
constexpr const char* kInLargestGroup =
    "the largest size and batch of the first of CLIP and Llama that was trained with all of them";

ClaimSpec Claim(const std::string& name, std::vector<std::string> items, std::string statement) {
  ClaimSpec claim;
  claim.id = "switchback-accuracy/" + name;
  for (std::string& item : items) claim.items.push_back("switchback/" + std::move(item));
  claim.statement = std::move(statement);
  claim.margin = LossMargin("nats");
  claim.diverged = Diverged::kAsValue;
  claim.scale = kScale;
  return claim;
}

// ---- primary: variants against 16 bits

Margin AccuracyMargin() {
  return {.value = 1,
          .unit = "percentage points",
          .justification = "The paper's failure is 5.9 points, its success 0.1."};
}

// Sets what compares an arm with `standard`: the paper's accuracy for CLIP, the loss for Llama.
void SetAgainstStandard(ClaimSpec& claim,
                        const std::string& model,
                        const std::function<std::string(const Tables&)>& arm,
                        const std::string& arm_text) {
  const bool clip = model == "clip";
  const Quantity quantity = clip ? Quantity::kAccuracy : Quantity::kLoss;
  claim.id += "-" + model;
  if (clip) claim.margin = AccuracyMargin();
  claim.contrast = fmt::format(
      "{} of {} minus that of standard (bf16), largest size and batch of {}; a training that "
      "diverged has {}",
      clip ? "zero_shot" : "valid_loss",
      arm_text,
      clip ? "CLIP" : "Llama",
      clip ? "no accuracy" : "the loss of the start");
  claim.evidence = [=](const Settings&, const Tables& tables) {
    return AgainstStandard(tables, model, quantity, arm(tables));
  };
}

ClaimSpec LlmInt8Loses(const std::string& model) {
  const bool clip = model == "clip";
  ClaimSpec claim = Claim("llm-int8-loses",
                          {"figure-1", "section-2.2.3"},
                          "LLM.int8(), SwitchBackQ with the weight gradient also in int8, loses "
                          "against bf16: \"a drop of 5.9 percentage points\" for CLIP ViT-Huge "
                          "(Section 2.2.3, Figure 1).");
  claim.kind = ClaimKind::kDifference;
  claim.side = clip ? -1 : 1;
  if (clip) claim.papers_effect = 5.9;
  SetAgainstStandard(
      claim, model, [](const Tables&) { return kLlmInt8; }, kLlmInt8);
  return claim;
}

ClaimSpec Int8Matches(const std::string& model) {
  ClaimSpec claim = Claim("int8-matches",
                          {"figure-1", "section-2.2.3"},
                          "int8 SwitchBack matches 16 bits: \"a negligible accuracy drop of 0.1 "
                          "percentage points\" for CLIP ViT-Huge (Section 2.2.3, Figure 1).");
  claim.kind = ClaimKind::kEquivalence;
  SetAgainstStandard(
      claim, model, [](const Tables&) { return kSwitchbackInt8; }, kSwitchbackInt8);
  return claim;
}

// The paper's code rounds gradients to E5M2; runs without that variant have E4M3.
constexpr const char *kFp8 = "switchback:e4m3fn/e5m2", *kFp8E4m3 = "switchback:e4m3fn";

ClaimSpec Fp8Matches(const std::string& model) {
  ClaimSpec claim = Claim("fp8-matches",
                          {"figure-1", "section-2.2.3"},
                          "fp8 SwitchBack matches 16 bits: \"a negligible accuracy drop of 0.1 "
                          "percentage points\" for CLIP ViT-Huge (Section 2.2.3, Figure 1).");
  claim.kind = ClaimKind::kEquivalence;
  const auto arm = [model](const Tables& tables) {
    const Frame group = LargestGroup(tables, model);
    const bool only_e4m3 = RowsOf(group, kFp8).Empty() && !RowsOf(group, kFp8E4m3).Empty();
    return only_e4m3 ? kFp8E4m3 : kFp8;
  };
  SetAgainstStandard(
      claim, model, arm, fmt::format("{}, or of {} if only that was trained,", kFp8, kFp8E4m3));
  return claim;
}

constexpr double kDivergesAbove = 420e6;  // parameters

Evidence TensorWiseFp8(const Settings& /*settings*/, const Tables& tables) {
  constexpr const char* kArm = "tensor-wise:e4m3fn/e5m2";
  const Frame group = LargestGroup(tables, "clip");
  if (group.Empty()) return NotTestedBecause("no CLIP was trained (--models)");
  const double parameters = group.Number("parameters");
  if (parameters <= kDivergesAbove) {
    return NotTestedBecause(
        fmt::format("out of reach: {:.3g} million parameters", parameters / 1e6));
  }
  Evidence evidence = AgainstStandard(tables, "clip", Quantity::kLoss, kArm);
  evidence.contrasts = {{{kArm, 1}}};
  return evidence;
}

ClaimSpec TensorWiseFp8Diverges() {
  ClaimSpec claim = Claim("tensor-wise-fp8-diverges",
                          {"figure-1", "section-2.2.3"},
                          "In fp8 \"training diverges for the baseline that uses tensor-wise "
                          "quantization for all matrices\" (Section 2.2.3, Figure 1).");
  claim.kind = ClaimKind::kDivergence;
  claim.contrast = "share of diverged runs of tensor-wise:e4m3fn/e5m2, largest size of CLIP";
  claim.margin = {.value = 0.5, .unit = "of the runs", .justification = "More often than not."};
  claim.scale = "The paper: CLIP above 420 million parameters, and so is a run that tests it.";
  claim.evidence = TensorWiseFp8;
  return claim;
}

// ---- exploratory

ClaimSpec Pairs(ClaimSpec claim, ClaimKind kind, const std::vector<ArmPair>& pairs) {
  claim.primary = false;
  claim.kind = kind;
  for (const auto& [arm, reference] : pairs) {
    claim.contrast += fmt::format(
        "{}{} minus {}", claim.contrast.empty() ? "valid_loss: " : "; ", arm, reference);
  }
  claim.contrast += fmt::format(", {}", kInLargestGroup);
  claim.evidence = [pairs](const Settings&, const Tables& tables) {
    return ComparePairs(tables, pairs);
  };
  return claim;
}

std::vector<ClaimSpec> VariantsAgainstEachOther() {
  return {
      Pairs(Claim("llm-int8-behind-switchback",
                  {"figure-1", "figure-9"},
                  "LLM.int8() has a higher loss than SwitchBack (Figures 1 and 9)."),
            ClaimKind::kDifference,
            {{kLlmInt8, kSwitchbackInt8}}),
      Pairs(Claim("switchback-m-matches",
                  {"section-2.2.1"},
                  "\"We observed only a negligible accuracy differences between SwitchBack and "
                  "SwitchBackM\" (Section 2.2.1)."),
            ClaimKind::kEquivalence,
            {{"switchback-m:int8", kSwitchbackInt8}}),
      Pairs(Claim("switchback-q-matches",
                  {"section-2.2.1"},
                  "Of SwitchBackQ, with W scaled by rows and columns, \"we did not observe this to "
                  "improve accuracy at the scales we consider\" (Section 2.2.1)."),
            ClaimKind::kEquivalence,
            {{"switchback-q:int8", kSwitchbackInt8}}),
      Pairs(
          Claim("weight-gradient-loses",
                {"appendix-d.3", "section-2.2.3"},
                "LLM.int8() differs from SwitchBack in the scales of W and in the weight gradient "
                "in int8. It is the weight gradient that loses (Section 2.2.3, Appendix D.3)."),
          ClaimKind::kDifference,
          {{"llm-int8-tensor-w:int8", kSwitchbackInt8}, {kLlmInt8, "switchback-q:int8"}}),
      Pairs(Claim("tensor-wise-int8-loses",
                  {"section-2.2.1"},
                  "In int8, scales by rows for inputs and gradients are \"the best trade-off of "
                  "simplicity and performance\": one scale per tensor for everything is worse "
                  "(Section 2.2.1)."),
            ClaimKind::kDifference,
            {{"tensor-wise:int8", kSwitchbackInt8}}),
      Pairs(Claim("grids-match",
                  {"section-2.2.1"},
                  "fp8 is simulated \"by rounding to the exact values of the float8 data type\" "
                  "(Section 2.2.1). The grids of bitsandbytes, which the paper used, are not those "
                  "of OCP; conclusions about fp8 hold for both."),
            ClaimKind::kEquivalence,
            {{"switchback:bnb-e4m3/bnb-e5m2", kFp8},
             {"tensor-wise:bnb-e4m3/bnb-e5m2", "tensor-wise:e4m3fn/e5m2"}})};
}

ClaimSpec HeadLoses() {
  ClaimSpec claim =
      Claim("head-loses",
            {"section-2.2.3"},
            "Not in the paper, whose head is in 16 bits: with the head in int8 as well, "
            "LLM.int8() loses more than SwitchBack does.");
  claim.primary = false;
  claim.contrast = fmt::format(
      "valid_loss that the head in 8 bits adds to {}, minus what it adds to {}; largest size and "
      "batch of Llama, whose only layer outside of the blocks is the head",
      kLlmInt8,
      kSwitchbackInt8);
  claim.evidence = [](const Settings&, const Tables& tables) {
    return CompareGrowth(tables,
                         {std::string(kLlmInt8) + "+all", kLlmInt8},
                         {std::string(kSwitchbackInt8) + "+all", kSwitchbackInt8});
  };
  return claim;
}

ClaimSpec GapGrows() {
  ClaimSpec claim =
      Claim("gap-grows",
            {"appendix-d.3", "equation-12"},
            "\"Variance due to quantization increases with k\", and in the weight gradient k "
            "is batch x sequence: the gap of LLM.int8() grows with it "
            "(Appendix D).");
  claim.primary = false;
  claim.diverged = Diverged::kMissing;
  claim.contrast =
      "valid_loss of llm-int8:int8 minus that of standard, at the most tokens minus at the fewest, "
      "largest size of the first of CLIP and Llama that was trained at two";
  claim.evidence = [](const Settings&, const Tables& tables) {
    return GapGrowth(tables, kLlmInt8);
  };
  return claim;
}

ClaimSpec Ratio(ClaimSpec claim, std::string contrast) {
  claim.primary = false;
  claim.diverged = Diverged::kMissing;
  claim.contrast = std::move(contrast);
  claim.margin = {.value = 0.1,
                  .unit = "as a ratio less 1",
                  .justification = "At equal tokens the own errors of four runs differ by more."};
  return claim;
}

ClaimSpec NoiseGrows() {
  ClaimSpec claim = Ratio(Claim("noise-grows",
                                {"appendix-d.3", "equation-12"},
                                "Quantising the weight gradient causes noise that grows with batch "
                                "x sequence (Appendix D.2, D.3)."),
                          "mean own_error of llm-int8:int8 at the most tokens over that at the "
                          "fewest, against 1");
  claim.evidence = [](const Settings&, const Tables& tables) {
    return NoiseGrowth(tables, kLlmInt8);
  };
  return claim;
}

ClaimSpec SwitchbackAvoidsNoise() {
  ClaimSpec claim =
      Ratio(Claim("switchback-avoids-noise",
                  {"appendix-d.3"},
                  "SwitchBack, with the weight gradient in 16 bits, avoids that noise: "
                  "it grows more in LLM.int8() (Appendix D.3)."),
            "growth of own_error with batch x sequence in llm-int8:int8 over that in "
            "switchback:int8, against 1");
  claim.evidence = [](const Settings&, const Tables& tables) {
    return NoiseGrowthRatio(tables, {kLlmInt8, kSwitchbackInt8});
  };
  return claim;
}

ClaimSpec LlmInt8IsNoisier() {
  ClaimSpec claim = Ratio(Claim("llm-int8-noisier",
                                {"appendix-d.3"},
                                "\"The weight gradient in CLIP training is a highly noisy "
                                "operation\": that of LLM.int8() has a larger error than that of "
                                "SwitchBack (Appendix D.3)."),
                          "mean error of dW of llm-int8:int8 over that of switchback:int8, against "
                          "1, with all errors that reach dW");
  claim.evidence = [](const Settings&, const Tables& tables) {
    return ErrorRatio(tables, {kLlmInt8, kSwitchbackInt8});
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  std::vector<ClaimSpec> claims;
  for (const char* const model : {"clip", "llama"}) {
    claims.insert(claims.end(), {LlmInt8Loses(model), Int8Matches(model), Fp8Matches(model)});
  }
  claims.push_back(TensorWiseFp8Diverges());
  for (ClaimSpec& claim : VariantsAgainstEachOther()) claims.push_back(std::move(claim));
  claims.insert(
      claims.end(),
      {HeadLoses(), GapGrows(), NoiseGrows(), SwitchbackAvoidsNoise(), LlmInt8IsNoisier()});
  return claims;
}

std::string Notes(const Settings& /*settings*/, const Tables& tables) {
  std::string text = "Trained:";
  for (const Frame& size : Frame(tables.at(std::string(kGapsTable))).By({"model", "size"})) {
    text += fmt::format("{} {} {} ({} parameters)",
                        text.back() == ':' ? "" : ",",
                        size.Text("model"),
                        size.Text("size"),
                        size.Text("parameters"));
  }
  return text +
         ". For Llama the margin and the loss are per byte; losses of CLIP are comparable only for "
         "the same number of tokens.";
}

}  // namespace numsim::experiments::switchback_accuracy
