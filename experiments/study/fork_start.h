// The state from which the arms of a study fork: the baseline is trained to it once per seed.
#pragma once

#include "experiments/shared/saved_training.h"
#include "experiments/study/measured_training.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {

// Returns the state from which a trial's training `config` forks. The first arm of a seed trains the
// baseline to it and keeps it in the result directory, where the other arms find it. One thread of the
// process trains it and the others wait. Throws TrialStopped as TrainingSteps does.
SavedTraining ForkStart(const Study& study,
                        const Settings& settings,
                        const Trial& trial,
                        const TrainConfig& config);

// Gives an arm's measurement what was measured of the baseline.
void GoOnFromStart(SavedTraining start, MeasuredTraining& training);

}  // namespace numsim::experiments::study
