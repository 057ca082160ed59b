// A training of a trial, as RowsOfTrainings describes it.
#pragma once

#include <cstdint>

#include "experiments/runner/experiment.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

struct TrainingOfRow {
  Row key;  // the cells of the columns RowsOfTrainings::key
  TrainConfig config;
  // The table `validations` has the loss of so many validations: at the end, after a half of the steps,
  // a quarter, ... 0 if there is no such table.
  int64_t validations = 0;
};

}  // namespace numsim::experiments
