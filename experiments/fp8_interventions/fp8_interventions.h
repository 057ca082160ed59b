// The experiment `fp8-interventions`: training with tensor-wise low precision, and interventions
// that keep it from failing (Figure 2, Section 2.3 of [SwitchBack]).
#pragma once

#include <string>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"

namespace numsim::experiments {

study::Study Fp8InterventionsStudy();
Experiment Fp8Interventions();

namespace fp8_interventions {

// Choices of the axes.
inline constexpr const char *kNone = "none", *kScale = "layer-scale";
inline constexpr const char *kUnstressed = "unstressed", *kBf16 = "bf16";

Frame OfArm(const Frame& frame, const std::string& intervention, const std::string& format);
// Returns the rows of the tower that is shown and judged: that of images if there is one.
Frame OfTower(const Frame& features);
Frame AfterLastBlock(const Frame& features);

// Returns what is done to make small models fail, which the paper does not do; "" for nothing.
std::string StressOf(const Settings& settings);
// Compares arms, where bf16 learns, and a stress does not harm it.
Evidence Compare(const study::Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts);
// Returns why a run is not the paper's setting in which fp8 diverges; "" if it is.
std::string OutOfReach(const study::Results& results);
study::Named<std::function<Evidence(const study::Results&)>> EvidenceFunctions();
std::string Notes(const study::Results& results);

}  // namespace fp8_interventions
}  // namespace numsim::experiments
