#include "experiments/core/looks.h"

#include <algorithm>

#include "experiments/core/settings.h"

namespace numsim::experiments {

std::vector<Look> ListLooks(const Settings& settings, const std::vector<Trial>& trials) {
  const std::vector<int> seeds = LooksOf(settings);
  std::vector<Look> looks;
  uint64_t before = 0;
  for (const int count : seeds) {
    Look look{settings, {}};
    look.settings.seeds = count;
    look.settings.looks = static_cast<int>(seeds.size());
    for (size_t i = 0; i < trials.size(); ++i) {
      const uint64_t place = trials[i].seed - settings.seed;
      if (place >= before && place < static_cast<uint64_t>(count)) look.added.push_back(i);
    }
    before = static_cast<uint64_t>(count);
    looks.push_back(std::move(look));
  }
  return looks;
}

std::vector<size_t> TrialsUpTo(const std::vector<Look>& looks, size_t count) {
  return ShardTrialsUpTo(looks, count, 0, 1);
}

std::vector<size_t> ShardTrialsUpTo(const std::vector<Look>& looks,
                                    size_t count,
                                    int shard_index,
                                    int shard_count) {
  std::vector<size_t> shard;
  for (size_t look = 0; look < count; ++look) {
    const std::vector<size_t>& added = looks[look].added;
    for (auto i = static_cast<size_t>(shard_index); i < added.size();
         i += static_cast<size_t>(shard_count)) {
      shard.push_back(added[i]);
    }
  }
  std::sort(shard.begin(), shard.end());
  return shard;
}

}  // namespace numsim::experiments
