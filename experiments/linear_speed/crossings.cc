// crossings.csv of `linear-speed`: the size from which a layer saves time.
#include <cmath>
#include <map>

#include "experiments/linear_speed/linear_speed.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/error.h"

namespace numsim::experiments::linear_speed {
namespace {

// Adds the row of a layer along the column `along`, from its rows at one size of the other kind.
void AddCrossing(const Frame& line,
                 std::string_view along,
                 std::string_view fixed,
                 std::vector<Row>& rows) {
  std::map<double, std::pair<double, double>> by_size;  // saved percent and speedup
  line.ForEach([&](const Frame& row) {
    by_size[row.Number(along)] = {row.Number("saved_percent"), row.Number("speedup")};
  });
  std::vector<double> sizes, saved;
  for (const auto& [size, values] : by_size) {
    sizes.push_back(size);
    saved.push_back(values.first);
  }
  const Crossing crossing = FindCrossing(sizes, saved);
  Row cells = KeyCells(KeyOf(line));
  cells.insert(cells.end(),
               {along,
                line.Number(fixed),
                crossing.size,
                crossing.between,
                crossing.always ? 1 : 0,
                by_size.begin()->second.second,
                by_size.rbegin()->second.second});
  rows.push_back(std::move(cells));
}

}  // namespace

Crossing FindCrossing(std::span<const double> sizes, std::span<const double> saved_percent) {
  NUMSIM_CHECK(sizes.size() == saved_percent.size() && !sizes.empty(), "{} sizes", sizes.size());
  size_t first = sizes.size();
  while (first > 0 && saved_percent[first - 1] > 0) --first;
  if (first == sizes.size()) return {kNaN, kNaN, false};
  if (first == 0) return {sizes[0], sizes[0], true};
  const double below = saved_percent[first - 1], above = saved_percent[first];  // <= 0, > 0
  const double share = -below / (above - below);
  const double low = std::log2(sizes[first - 1]), high = std::log2(sizes[first]);
  return {sizes[first], std::exp2(low + share * (high - low)), false};
}

std::vector<Row> CrossingRows(const Frame& layers) {
  std::vector<Row> rows;
  const Frame compared = layers.Where([](const Frame& row) {
    return row.Text("kind") != kStandard && !std::isnan(row.Number("saved_percent"));
  });
  for (const LayerKey& key : LayerKeys(compared)) {
    const Frame layer = OfLayer(compared, key);
    for (const auto& [along, fixed] : {std::pair{"dim", "tokens"}, std::pair{"tokens", "dim"}}) {
      std::map<double, Frame> lines;  // ascending
      for (const Frame& line : layer.By({fixed})) lines.emplace(line.Number(fixed), line);
      for (const auto& [at, line] : lines) AddCrossing(line, along, fixed, rows);
    }
  }
  return rows;
}

}  // namespace numsim::experiments::linear_speed
