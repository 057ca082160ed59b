// Language models a second time: one row of one sequence after another, in float64, with plain
// loops and the functions of the C library. It shares no code with the layers.
#pragma once

#include "numsim/data/source.h"
#include "numsim/models/model_config.h"
#include "numsim/models/parameter.h"

namespace numsim {

// The mean loss over the tokens of the batch that have a target.
double NaiveLanguageLoss(const ModelConfig& config,
                         ParameterList<double>& parameters,
                         const Batch& batch);

}  // namespace numsim
