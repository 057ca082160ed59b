// Checks that a configuration may continue a training.
#pragma once

#include <string_view>

#include "numsim/config/config.h"

namespace numsim {

// Checks that `ours` may continue the training that was started with `theirs`, a text written by
// WriteTrainConfig. All keys must be equal, except that train.steps may be larger, and data.path,
// data.valid_path and checkpoint.every may differ. Both are configurations after FitToData. Throws
// Error naming the first key that differs, with both values; also throws Error as ParseTrainConfig
// does.
void CheckContinues(const TrainConfig& ours, std::string_view theirs);

}  // namespace numsim
