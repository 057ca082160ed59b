// Evidence about the claims of `switchback-accuracy`: which trainings a claim compares, and their
// outcomes. Arms have the texts of variants.
#pragma once

#include <string>
#include <vector>

#include "experiments/switchback_accuracy/switchback_accuracy.h"

namespace numsim::experiments::switchback_accuracy {

// The outcomes by which trainings are compared: valid_loss; zero_shot in percent. Infinite if the
// training diverged.
double Loss(const Frame& run);
double Accuracy(const Frame& run);

// Compares variants in the largest group of the model that the arms name, or else of the first of
// CLIP and Llama that was trained with all of them. A training that diverged has the mean loss of the
// start, or no accuracy.
Evidence Compare(const Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts);
// Returns why no CLIP is large enough for fp8 to diverge; "" if one is.
std::string OutOfReach(const Results& results);
// Evidence that is no contrast of arms:
// fp8-of-clip, fp8-of-llama  fp8 SwitchBack against standard: the paper's, or of E4M3 alone
// gap-growth          the gap of LLM.int8() to standard at the most tokens against the fewest, for the
//                     largest size of the first of CLIP and Llama that was trained at both
// noise-growth        the ratio of its own_error there against 1
// noise-growth-ratio  that ratio over the one of SwitchBack against 1
// error-ratio         the ratio of the errors of both against 1
study::Named<std::function<Evidence(const Results&)>> EvidenceFunctions();

}  // namespace numsim::experiments::switchback_accuracy
