// Whether a training may be continued under another configuration.
#pragma once

#include <string_view>

#include "numsim/config/config.h"

namespace numsim {

// Returns when `ours` continues the training that `theirs`, the text of WriteTrainConfig, began:
// all keys are equal, but that train.steps may be larger, and data.path, data.valid_path and
// checkpoint.every may be anything. Both are configurations after FitToData.
// Throws Error naming the first key that differs, with both values; or as ParseTrainConfig does.
void CheckContinues(const TrainConfig& ours, std::string_view theirs);

}  // namespace numsim
