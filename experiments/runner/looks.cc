#include "experiments/runner/looks.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

#include "experiments/runner/settings.h"

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
  std::vector<size_t> trials;
  for (size_t look = 0; look < count; ++look) {
    trials.insert(trials.end(), looks[look].added.begin(), looks[look].added.end());
  }
  std::sort(trials.begin(), trials.end());
  return trials;
}

std::vector<std::vector<size_t>> ShareOut(const Look& look,
                                          const std::vector<Trial>& trials,
                                          size_t count) {
  std::vector<size_t> order = look.added;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return trials[a].cost > trials[b].cost;
  });
  // Cost so far, number of trials (costs may be 0), index.
  using Shard = std::tuple<double, size_t, size_t>;
  std::priority_queue<Shard, std::vector<Shard>, std::greater<>> least;
  for (size_t i = 0; i < count; ++i) least.emplace(0.0, 0, i);
  std::vector<std::vector<size_t>> shards(count);
  for (const size_t trial : order) {
    const auto [cost, size, index] = least.top();
    least.pop();
    least.emplace(cost + trials[trial].cost, size + 1, index);
    shards[index].push_back(trial);
  }
  for (std::vector<size_t>& shard : shards) std::sort(shard.begin(), shard.end());
  return shards;
}

std::vector<size_t> ShardTrialsUpTo(const std::vector<Look>& looks,
                                    const std::vector<Trial>& trials,
                                    size_t count,
                                    size_t shard_index,
                                    size_t shard_count) {
  std::vector<size_t> shard;
  for (size_t look = 0; look < count; ++look) {
    const std::vector<size_t> added = ShareOut(looks[look], trials, shard_count)[shard_index];
    shard.insert(shard.end(), added.begin(), added.end());
  }
  std::sort(shard.begin(), shard.end());
  return shard;
}

}  // namespace numsim::experiments
