// The verdicts of a run as a table and as text.
#pragma once

#include <string>
#include <vector>

#include "experiments/claims/claim.h"
#include "numsim/io/csv.h"

namespace numsim::experiments {

// Returns verdicts.csv: a row per claim and contrast. docs/verdicts.md lists the columns.
Table VerdictTable(const std::vector<JudgedClaim>& claims,
                   const Settings& settings,
                   const std::string& scale);

// Returns a line per contrast: "llm-int8 - bf16: 0.0273 [0.0137, 0.0410] nats per token (margin
// 0.02)", and the further numbers of the evidence.
std::string MeasuredText(const JudgedClaim& claim);

// Returns the verdict and on what it rests: "inconclusive (2 layers, width 64, 300 steps; 3 seeds;
// 12 seeds would decide it)".
std::string VerdictText(const JudgedClaim& claim, const std::string& scale);

// Returns the deviations of a run from the settings of the paper, one per line; "" if there is
// none.
std::string DeviationsText(const std::vector<PaperSetting>& paper, const Settings& settings);

}  // namespace numsim::experiments
