// Forks: trainings that go on from the state of another training, the baseline.
//
// A fork keeps the model with its parameters, the data and their order, the seed and the number of
// steps. What may differ before it are the keys of [linear], [storage], [stress], [optimizer],
// [schedule] and [loss_scaler], and model.mlp, model.patch_dropout and model.norm_epsilon. The optimiser
// keeps its kind, except that adamw and stable-adamw may follow one another.
#pragma once

#include <string>
#include <vector>

#include "numsim/config/config.h"

namespace numsim {

// Returns the configuration of the baseline, which has no fork itself. Its schedule has the same number
// of steps. Requires a fork that CheckFork accepts; without a fork, returns the configuration.
TrainConfig BaselineOf(const TrainConfig& config);

// Returns the keys of ForkConfig::before with which BaselineOf(config) trains as `baseline` does. Throws
// KeyError for a key that a fork keeps. Requires configurations without a fork.
std::vector<std::string> KeysBefore(const TrainConfig& baseline, const TrainConfig& config);

// Returns true if both have the same [linear] with the same overrides.
bool HasSameLinear(const TrainConfig& a, const TrainConfig& b);

// Throws KeyError for a fork at or behind the end, for keys without a fork, for keys that a fork keeps,
// and where the configuration of the baseline is not valid.
void CheckFork(const TrainConfig& config);

}  // namespace numsim
