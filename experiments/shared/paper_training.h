// The trainings of the papers, from which the summary of a study that trains lists its deviations.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

enum class Paper : uint8_t { kSwitchBack, kFishman };  // keys of docs/references.md

// Returns the settings with which the paper trains: for each of `options` that sets one of them (the
// size of the model, steps, batch, learning rate and more), and for the data. Then the settings of
// `others`; a setting there replaces the one with the same option.
std::vector<PaperSetting> PaperTraining(Paper paper,
                                        const std::vector<Option>& options,
                                        std::vector<PaperSetting> others);

}  // namespace numsim::experiments
