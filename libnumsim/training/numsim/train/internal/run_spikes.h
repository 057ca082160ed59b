// The spikes of a training, read from its CSV file.
#pragma once

#include <cstdint>
#include <vector>

#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"
#include "numsim/train/trainer.h"

namespace numsim {

// Steps at which spikes begin, by the rules of stats/spikes.h after the warm-up.
struct TrainingSpikes {
  std::vector<uint64_t> loss;
  std::vector<uint64_t> rms;  // of the tensor with the largest RMS_t
};
// Returns the spikes in the rows of train.csv; empty if it does not have a row for every step.
TrainingSpikes SpikesOf(const TrainConfig& config, const Table& train);

// Returns a series of single points at those steps, at the heights of the losses.
Series SpikeMarks(std::string label,
                  int style,
                  const std::vector<uint64_t>& steps,
                  const Table& train);

}  // namespace numsim
