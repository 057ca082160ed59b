// The derived tables of `feature-statistics`: forecasts over blocks and seeds, growth and depth
// over seeds.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/special_values.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::feature_statistics {
namespace {

using Key = std::vector<std::string>;

Key KeyOf(const Table& table, size_t row, std::initializer_list<const char*> columns) {
  Key key;
  for (const char* const column : columns) key.push_back(table.Text(row, column));
  return key;
}

// Groups by key, in the order of their first rows.
template <typename Group>
class Groups {
 public:
  Group& At(const Key& key) {
    const auto [found, is_new] = places_.emplace(key, groups_.size());
    if (is_new) groups_.push_back({key, {}});
    return groups_[found->second].second;
  }
  const std::vector<std::pair<Key, Group>>& All() const { return groups_; }

 private:
  std::map<Key, size_t> places_;
  std::vector<std::pair<Key, Group>> groups_;
};

void AddEstimate(const Estimate& mean, std::vector<std::string>& row) {
  for (const double value : {mean.value, mean.low, mean.high}) row.push_back(FormatCell(value));
}

// Returns the mean of the ratios for seeds that both have; NaN if there are none.
Estimate RatioOverSeeds(const SeedValues& values, const SeedValues& divisors) {
  SeedValues ratios;
  for (const auto& [seed, value] : values) {
    const auto divisor = divisors.find(seed);
    if (divisor != divisors.end()) ratios[seed] = value / divisor->second;
  }
  return ratios.empty() ? Estimate{kNaN, kNaN, kNaN} : OverSeeds(ratios);
}

// The results of the forecasts of one seed, summed over the blocks of a tower.
struct SeedForecasts {
  double compared = 0, overruns = 0, clipped = 0, within_2 = 0;
  double blocks = 0, change_median = 0,
         change_95 = 0;  // only over blocks with a step that was compared
};

struct Forecasts {
  std::map<std::string, SeedForecasts> seeds;
  double largest_excess = kNaN, change_95_worst = kNaN;

  // Adds one block, which is skipped if none of its steps was compared.
  void Add(const Table& maxima, size_t r) {
    SeedForecasts& seed = seeds[maxima.Text(r, "seed")];
    const double compared = maxima.Number(r, "compared");
    if (compared == 0) return;
    seed.compared += compared;
    seed.overruns += maxima.Number(r, "overruns");
    seed.clipped += maxima.Number(r, "clipped");
    seed.within_2 += maxima.Number(r, "within_2");
    seed.blocks += 1;
    seed.change_median += maxima.Number(r, "change_median");
    seed.change_95 += maxima.Number(r, "change_95");
    largest_excess = std::fmax(largest_excess, maxima.Number(r, "largest_excess"));
    change_95_worst = std::fmax(change_95_worst, maxima.Number(r, "change_95"));
  }

  // Returns the mean over seeds with steps that were compared; NaN if there are none.
  template <typename Value>
  Estimate Mean(const Value& value) const {
    std::vector<double> values;
    for (const auto& [name, seed] : seeds) {
      if (seed.compared > 0) values.push_back(value(seed));
    }
    return values.empty() ? Estimate{kNaN, kNaN, kNaN} : MeanOf(values);
  }

  std::vector<std::string> Cells() const {
    using S = SeedForecasts;
    const Estimate over = Mean([](const S& s) { return s.overruns / s.compared; });
    const Estimate clipped = Mean([](const S& s) { return s.clipped / s.compared; });
    const Estimate within = Mean([](const S& s) { return s.within_2 / s.compared; });
    const Estimate median = Mean([](const S& s) { return s.change_median / s.blocks; });
    const Estimate change = Mean([](const S& s) { return s.change_95 / s.blocks; });
    return {FormatCell(uint64_t{seeds.size()}),
            FormatCell(over.value),
            FormatCell(over.low),
            FormatCell(over.high),
            FormatCell(clipped.value),
            FormatCell(clipped.low),
            FormatCell(clipped.high),
            FormatCell(within.value),
            FormatCell(largest_excess),
            FormatCell(median.value),
            FormatCell(change.value),
            FormatCell(change_95_worst)};
  }
};

void AddSmoothness(const Table& maxima, Table& smoothness) {
  Groups<Forecasts> groups;
  for (size_t r = 0; r < maxima.rows.size(); ++r) {
    const Key key = KeyOf(
        maxima, r, {"size", "layer_scale", "tower", "tensor", "steps", "forecast", "history"});
    groups.At(key).Add(maxima, r);
  }
  for (const auto& [key, forecasts] : groups.All()) {
    std::vector<std::string> row = key;
    for (std::string& cell : forecasts.Cells()) row.push_back(std::move(cell));
    smoothness.rows.push_back(std::move(row));
  }
}

// The values of a statistic at the first and the last record, by seed.
struct Records {
  SeedValues first, last;

  void Add(const std::string& seed, double value) {
    first.emplace(seed, value);
    last[seed] = value;
  }
};

void AddGrowth(const Table& features, Table& growth) {
  Groups<Records> groups;
  for (size_t r = 0; r < features.rows.size(); ++r) {
    for (const char* const statistic : {"mean_abs", "max_abs"}) {
      Key key = KeyOf(features, r, {"size", "layer_scale", "tower", "block", "tensor"});
      key.push_back(statistic);
      groups.At(key).Add(features.Text(r, "seed"), features.Number(r, statistic));
    }
  }
  for (const auto& [key, records] : groups.All()) {
    std::vector<std::string> row = key;
    row.push_back(FormatCell(uint64_t{records.last.size()}));
    AddEstimate(OverSeeds(records.first), row);
    AddEstimate(OverSeeds(records.last), row);
    AddEstimate(RatioOverSeeds(records.last, records.first), row);
    growth.rows.push_back(std::move(row));
  }
}

// The outputs of the first and of the last block at the last record, by seed.
struct Depth {
  SeedValues first_block, last_block;
  double deepest = 0;

  void Add(const std::string& seed, double block, double value) {
    deepest = std::max(deepest, block);
    if (block == 0) first_block[seed] = value;
    if (block == deepest) last_block[seed] = value;
  }
};

void AddDepth(const Table& features, Table& depth) {
  Groups<Depth> groups;
  for (size_t r = 0; r < features.rows.size(); ++r) {
    if (features.Text(r, "tensor") != kOutput) continue;
    for (const char* const statistic : {"mean_abs", "max_abs"}) {
      Key key = KeyOf(features, r, {"size", "layer_scale", "tower"});
      key.push_back(statistic);
      groups.At(key).Add(
          features.Text(r, "seed"), features.Number(r, "block"), features.Number(r, statistic));
    }
  }
  std::map<Key, SeedValues> without;  // last block without layer-scale, by size, tower, statistic
  for (const auto& [key, seeds] : groups.All()) {
    if (key[1] == kNoLayerScale) without[{key[0], key[2], key[3]}] = seeds.last_block;
  }
  for (const auto& [key, seeds] : groups.All()) {
    std::vector<std::string> row = key;
    row.push_back(FormatCell(uint64_t{seeds.last_block.size()}));
    AddEstimate(OverSeeds(seeds.last_block), row);
    AddEstimate(RatioOverSeeds(seeds.last_block, seeds.first_block), row);
    AddEstimate(RatioOverSeeds(seeds.last_block, without[{key[0], key[2], key[3]}]), row);
    depth.rows.push_back(std::move(row));
  }
}

}  // namespace

void Derive(const Settings&, Tables& tables) {
  AddSmoothness(tables.at(std::string(kMaximaTable)), tables.at(std::string(kSmoothnessTable)));
  const Table& features = tables.at(std::string(kFeaturesTable));
  AddGrowth(features, tables.at(std::string(kGrowthTable)));
  AddDepth(features, tables.at(std::string(kDepthTable)));
}

}  // namespace numsim::experiments::feature_statistics
