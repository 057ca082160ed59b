// The looks of a run: after each, its claims are judged, and the next one adds the trials of further
// seeds (--until-decided). A run without --until-decided has one look, with all trials.
#pragma once

#include <cstddef>
#include <vector>

#include "experiments/runner/experiment.h"

namespace numsim::experiments {

struct Look {
  Settings settings;  // `seeds` is the number of seeds at this look, `looks` that of all looks
  std::vector<size_t> added;  // numbers of the trials that the looks before it do not have
};

// Returns the looks in their order. `trials` are those of WithAllSeeds(settings).
std::vector<Look> ListLooks(const Settings& settings, const std::vector<Trial>& trials);

// Returns the numbers of the trials of the first `count` looks, in increasing order.
std::vector<size_t> TrialsUpTo(const std::vector<Look>& looks, size_t count);

// Returns the trials that a look adds, in increasing order for each of `count` shards of about equal
// cost: the most expensive trial goes first, and each to the shard with the least cost so far. Of equal
// trials and of equal shards, the one with the lower number comes first. No shard is empty if there
// are enough trials.
std::vector<std::vector<size_t>> ShareOut(const Look& look,
                                          const std::vector<Trial>& trials,
                                          size_t count);

// Returns the numbers of the trials of the first `count` looks that belong to shard I/N, in increasing
// order. Every look is shared out on its own, so a trial stays in its shard.
std::vector<size_t> ShardTrialsUpTo(const std::vector<Look>& looks,
                                    const std::vector<Trial>& trials,
                                    size_t count,
                                    size_t shard_index,
                                    size_t shard_count);

}  // namespace numsim::experiments
