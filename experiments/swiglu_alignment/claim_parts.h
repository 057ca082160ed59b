// Names that the claims of `swiglu-alignment` about trainings share.
#pragma once

#include <string>
#include <vector>

#include "experiments/swiglu_alignment/swiglu_alignment.h"

namespace numsim::experiments::swiglu_alignment {

// Returns a claim with the id swiglu-alignment/NAME about this item of [Fishman], "figure-2".
ClaimSpec TrainingClaim(const std::string& name,
                        const char* item,
                        std::string statement,
                        std::string contrast,
                        bool primary);

// Returns the margin of |cos(w1, w2)|.
Margin CosineMargin();

using RunOutcome = double (*)(const Frame& run);
// Returns an outcome, or infinity, which stands for a diverged run.
double UnlessRunDiverged(const Frame& run, RunOutcome outcome);
// Returns |cos(w1, w2)| of the outlier channel at the end.
double LateCos(const Frame& run);

Frame RunsOfArm(const Tables& tables, const Arm& arm);

// Return the claims by subject.
std::vector<ClaimSpec> CentreClaims();
std::vector<ClaimSpec> AxisClaims();
ClaimSpec Fp8Diverges();

}  // namespace numsim::experiments::swiglu_alignment
