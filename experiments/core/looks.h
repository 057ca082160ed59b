// The looks of a run: after each, its claims are judged, and the next one adds the trials of further
// seeds (--until-decided). A run without --until-decided has one look, with all trials.
#pragma once

#include <cstddef>
#include <vector>

#include "experiments/core/experiment.h"

namespace numsim::experiments {

struct Look {
  Settings settings;  // `seeds` is the number of seeds at this look, `looks` that of all looks
  std::vector<size_t> added;  // numbers of the trials that the looks before it do not have
};

// Returns the looks in their order. `trials` are those of WithAllSeeds(settings).
std::vector<Look> ListLooks(const Settings& settings, const std::vector<Trial>& trials);

// Returns the numbers of the trials of the first `count` looks, in increasing order.
std::vector<size_t> TrialsUpTo(const std::vector<Look>& looks, size_t count);

// Returns those of them that belong to shard I/N: the trials whose place in Look::added is I modulo N.
// So every look is shared out evenly, and a trial stays in its shard.
std::vector<size_t> ShardTrialsUpTo(const std::vector<Look>& looks,
                                    size_t count,
                                    int shard_index,
                                    int shard_count);

}  // namespace numsim::experiments
