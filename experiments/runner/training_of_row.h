// A training of a trial, as RowsOfTrainings describes it.
#pragma once

#include "experiments/runner/experiment.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

struct TrainingOfRow {
  Row key;  // the cells of the columns RowsOfTrainings::key
  TrainConfig config;
};

}  // namespace numsim::experiments
