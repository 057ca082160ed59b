// Text for the summary and a figure from what_if.csv.
#pragma once

#include <filesystem>
#include <string>

#include "numsim/config/config.h"
#include "numsim/plot/figure.h"

namespace numsim {

// Returns lines for summary.txt from the what_if.csv in `directory`: per recipe and kind of tensor the
// lowest SQNR and the largest overflow with their layers and steps, and for gradients the layers and
// steps below kEffectiveGradientToNoise. "" if the configuration has no recipes. Throws Error as
// ReadCsv does.
std::string WhatIfText(const TrainConfig& config, const std::filesystem::path& directory);

// Returns the figure "what_if": for X, W and G the SQNR under each recipe over the steps, the median
// of the layers with a band from the lowest to the highest. Without panels if there are no rows.
// Throws Error as ReadCsv does.
Figure WhatIfFigure(const TrainConfig& config, const std::filesystem::path& directory);

}  // namespace numsim
