// Reads the figures of a study.
#pragma once

#include "experiments/study/read_parts.h"

namespace numsim::experiments::study {

// Reads [[figures]]. `study` has its tables.
std::vector<FigureSource> ReadFigures(Node& root, const Study& study, const Functions& functions);

}  // namespace numsim::experiments::study
