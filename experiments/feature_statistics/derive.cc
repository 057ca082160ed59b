// The derived tables of `feature-statistics`: forecasts over blocks and seeds, growth and depth
// over seeds.
#include <algorithm>
#include <initializer_list>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::feature_statistics {
namespace {

constexpr const char* kStatistics[] = {"mean_abs", "max_abs"};
const std::initializer_list<std::string_view> kForecastKeys = {
    "size", "layer_scale", "tower", "tensor", "steps", "forecast", "history"};

SeedValues Ratios(const SeedValues& values, const SeedValues& divisors) {
  SeedValues ratios;
  for (const auto& [seed, value] : values) {
    const auto divisor = divisors.find(seed);
    if (divisor != divisors.end()) ratios[seed] = value / divisor->second;
  }
  return ratios;
}

// Returns the cells of smoothness.csv behind the key, from the rows of `maxima` of a tensor in all
// blocks of a tower. Blocks without a step that was compared do not count.
Row SmoothnessCells(const Frame& tensor) {
  const Frame compared =
      tensor.Where([](const Frame& block) { return block.Number("compared") > 0; });
  SeedValues overruns, clipped, within_2, change_median, change_95;
  for (const Frame& blocks : compared.By({"seed"})) {
    const std::string seed = blocks.Text("seed");
    overruns[seed] = ShareOf(blocks, "overruns");
    clipped[seed] = ShareOf(blocks, "clipped");
    within_2[seed] = ShareOf(blocks, "within_2");
    change_median[seed] = blocks.Mean("change_median");
    change_95[seed] = blocks.Mean("change_95");
  }
  Row cells = {tensor.Distinct("seed").size()};
  Append({MeanOf(overruns), MeanOf(clipped)}, cells);
  cells.insert(cells.end(),
               {MeanOf(within_2).value,
                Largest(compared, "largest_excess"),
                MeanOf(change_median).value,
                MeanOf(change_95).value,
                Largest(compared, "change_95")});
  return cells;
}

std::vector<Row> Smoothness(const Results& results) {
  std::vector<Row> rows;
  for (const Frame& tensor : results.Of("maxima").By(kForecastKeys)) {
    Row& row = rows.emplace_back();
    for (const std::string_view key : kForecastKeys) row.push_back(tensor.Text(key));
    const Row cells = SmoothnessCells(tensor);
    row.insert(row.end(), cells.begin(), cells.end());
  }
  return rows;
}

// The values of a statistic at the first and at the last record of each seed.
struct Records {
  SeedValues first, last;

  Records(const Frame& features, const char* statistic) {
    for (const Frame& seed : features.By({"seed"})) {
      first[seed.Text("seed")] = seed.Number(statistic);
      last[seed.Text("seed")] = seed.Number(seed.Size() - 1, statistic);
    }
  }
};

std::vector<Row> Growth(const Results& results) {
  std::vector<Row> rows;
  for (const Frame& tensor :
       results.Of("features").By({"size", "layer_scale", "tower", "block", "tensor"})) {
    for (const char* const statistic : kStatistics) {
      const Records records(tensor, statistic);
      Row row = {tensor.Text("size"),
                 tensor.Text("layer_scale"),
                 tensor.Text("tower"),
                 tensor.Text("block"),
                 tensor.Text("tensor"),
                 statistic,
                 records.last.size()};
      Append({MeanOf(records.first),
              MeanOf(records.last),
              MeanOf(Ratios(records.last, records.first))},
             row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Returns the outputs of a block at the end of each training of a tower.
SeedValues AtTheEnd(const Frame& tower, const std::string& block, const char* statistic) {
  return Records(tower.Where("block", block), statistic).last;
}

std::vector<Row> Depth(const Results& results) {
  const Frame outputs = results.Of("features").Where("tensor", kOutput);
  std::vector<Row> rows;
  for (const Frame& tower : outputs.By({"size", "layer_scale", "tower"})) {
    const std::vector<std::string> blocks = tower.Distinct("block");
    const Frame without = outputs.Where("size", tower.Text("size"))
                              .Where("tower", tower.Text("tower"))
                              .Where("layer_scale", kNoLayerScale);
    for (const char* const statistic : kStatistics) {
      const SeedValues last = AtTheEnd(tower, blocks.back(), statistic);
      Row row = {tower.Text("size"),
                 tower.Text("layer_scale"),
                 tower.Text("tower"),
                 statistic,
                 last.size()};
      Append({MeanOf(last),
              MeanOf(Ratios(last, AtTheEnd(tower, blocks.front(), statistic))),
              MeanOf(Ratios(last, AtTheEnd(without, blocks.back(), statistic)))},
             row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

double ShareOf(const Frame& blocks, std::string_view column) {
  return blocks.Mean(column) / blocks.Mean("compared");
}

double Largest(const Frame& frame, std::string_view column) {
  const std::vector<double> values = frame.Numbers(column);
  return values.empty() ? kNaN : *std::max_element(values.begin(), values.end());
}

study::Named<std::function<std::vector<Row>(const Results&)>> DerivedTables() {
  return {{"smoothness", Smoothness}, {"growth", Growth}, {"depth", Depth}};
}

}  // namespace numsim::experiments::feature_statistics
