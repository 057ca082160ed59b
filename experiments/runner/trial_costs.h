// A file with the costs of trials, by which a sweep shares them out: a CSV file with the columns
// trial (number), label and cost, a row per trial in their order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

// Returns the text of such a file.
std::string TrialCostsText(const std::vector<Trial>& trials);

// Sets Trial::cost from such a file. Throws Error naming file and record if it is of other trials, or a
// cost is not a number above 0.
void ReadTrialCosts(const std::filesystem::path& path, std::vector<Trial>& trials);

}  // namespace numsim::experiments
