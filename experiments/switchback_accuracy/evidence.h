// Evidence about the claims of `switchback-accuracy`: which trainings a claim compares, and their
// outcomes. Arms have the texts of variants.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/switchback_accuracy/switchback_accuracy.h"

namespace numsim::experiments::switchback_accuracy {

inline constexpr const char* kStandard = "standard";
inline constexpr const char* kSwitchbackInt8 = "switchback:int8";
inline constexpr const char* kLlmInt8 = "llm-int8:int8";

// An arm and its reference.
using ArmPair = std::pair<std::string, std::string>;

// Returns the trainings with the most tokens of the largest size of a model; no rows if it was not
// trained.
Frame LargestGroup(const Tables& tables, const std::string& model);

// The quantity by which trainings are compared.
enum class Quantity { kLoss, kAccuracy };  // valid_loss; zero_shot in percent

// Compares an arm with `standard` in the largest group of a model. A training that diverged has the
// mean loss of the start, or no accuracy.
Evidence AgainstStandard(const Tables& tables,
                         const std::string& model,
                         Quantity quantity,
                         const std::string& arm);
// Compares the losses of pairs of variants in the largest group of the first of CLIP and Llama that
// was trained with all of them.
Evidence ComparePairs(const Tables& tables, const std::vector<ArmPair>& pairs);
// Compares the loss of an arm minus that of its reference with that of another arm minus its own, in
// the largest group of Llama.
Evidence CompareGrowth(const Tables& tables, const ArmPair& pair, const ArmPair& other);
// Compares the gap of a variant to `standard` at the most tokens with that at the fewest, for the
// largest size of the first of CLIP and Llama that was trained with the variant at both.
Evidence GapGrowth(const Tables& tables, const std::string& variant);
// Compares the ratio of own_error at the most tokens to that at the fewest with 1.
Evidence NoiseGrowth(const Tables& tables, const std::string& variant);
// Compares that ratio of an arm over that of its reference with 1.
Evidence NoiseGrowthRatio(const Tables& tables, const ArmPair& pair);
// Compares the ratio of `error` of two variants with 1.
Evidence ErrorRatio(const Tables& tables, const ArmPair& pair);

}  // namespace numsim::experiments::switchback_accuracy
