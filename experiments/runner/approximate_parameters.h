// The size of the model of a configuration, without building it.
#pragma once

#include "numsim/config/config.h"

namespace numsim::experiments {

// Returns the number of parameters of a transformer, roughly: 12 layers x width^2 for the blocks
// of each tower, and its embeddings. Bytes and captions are counted as 256 tokens, also before
// FitToData; data of kind zipf and pieces of a text as data.vocabulary.
double ApproximateParameters(const TrainConfig& config);

}  // namespace numsim::experiments
