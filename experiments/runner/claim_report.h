// The verdicts of a run as a table and as text.
#pragma once

#include <string>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/runner/experiment.h"
#include "numsim/io/csv.h"

namespace numsim::experiments {

// Returns verdicts.csv: a row per claim and contrast, the control last. docs/verdicts.md lists the columns.
Table VerdictTable(const std::vector<JudgedClaim>& claims,
                   const Settings& settings,
                   const RunScale& scale);

// Returns a line per contrast: "llm-int8 - bf16: 0.0273 [0.0137, 0.0410] nats per token (margin
// 0.02)", the control, and the further numbers of the evidence.
std::string MeasuredText(const JudgedClaim& claim);

// Returns the verdict and on what it rests: "inconclusive (toy, 0.14 M / 1.2 M tokens; 2 layers,
// width 64, 300 steps; 3 seeds; 12 seeds would decide it)".
std::string VerdictText(const JudgedClaim& claim, const RunScale& scale);

// Returns the deviations of a run from the settings of the paper: a table of those of the list that all
// trainings share, and then one per line; "" if there is none.
std::string DeviationsText(const Experiment& experiment, const Settings& settings);

}  // namespace numsim::experiments
