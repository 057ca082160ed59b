// The state from which the arms of a study fork: the baseline is trained to it once per seed.
#pragma once

#include "experiments/shared/saved_training.h"
#include "experiments/study/measured_training.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {

// Returns the baseline of a trial's training `config` at its fork. Trains it, unless the trial's result
// directory has it already; then keeps it there for the other arms of the seed. One thread of the
// process trains it and the others wait. Throws TrialStopped as TrainingSteps does.
SavedTraining ForkStart(const Study& study,
                        const Settings& settings,
                        const Trial& trial,
                        const TrainConfig& config);

// Gives an arm's measurement what was measured of the baseline.
void GoOnFromStart(SavedTraining start, MeasuredTraining& training);

}  // namespace numsim::experiments::study
