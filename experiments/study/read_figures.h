// Reads the figures of a study.
#pragma once

#include "experiments/study/read_parts.h"

namespace numsim::experiments::study {

FigureSource ReadFigure(Node& node, const Study& study, const Functions& functions);

}  // namespace numsim::experiments::study
