// The experiment `fp4-training`: recipes of 4-bit training side by side. study.toml has all of it but the
// outcome of a run.
#pragma once

#include "experiments/runner/experiment.h"
#include "experiments/study/study.h"

namespace numsim::experiments {

study::Study Fp4TrainingStudy();
Experiment Fp4Training();

}  // namespace numsim::experiments
