// crossings.csv of `linear-speed`: the size from which a layer saves time.
#include <cmath>
#include <limits>
#include <map>

#include "experiments/linear_speed/linear_speed.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/error.h"

namespace numsim::experiments::linear_speed {
namespace {

// The savings of a layer along dim at a fixed number of tokens, or along tokens at a fixed dim.
struct Line {
  std::map<double, double> saved, speedup;  // saved percent and speedup by size
};

// Returns the lines of a layer along the column `along`, by the value of the column `fixed`.
std::map<double, Line> LinesOf(const Table& layers,
                               const LayerKey& key,
                               std::string_view along,
                               std::string_view fixed) {
  std::map<double, Line> lines;
  for (size_t r = 0; r < layers.rows.size(); ++r) {
    const double saved = layers.Number(r, "saved_percent");
    if (std::isnan(saved) || KeyOf(layers, r) != key) continue;
    Line& line = lines[layers.Number(r, fixed)];
    line.saved[layers.Number(r, along)] = saved;
    line.speedup[layers.Number(r, along)] = layers.Number(r, "speedup");
  }
  return lines;
}

void AppendLine(
    const LayerKey& key, std::string_view along, double at, const Line& line, Table& crossings) {
  std::vector<double> sizes, saved;
  for (const auto& [size, percent] : line.saved) {
    sizes.push_back(size);
    saved.push_back(percent);
  }
  const Crossing crossing = FindCrossing(sizes, saved);
  std::vector<std::string> cells = KeyCells(key);
  cells.insert(cells.end(),
               {FormatCell(along),
                FormatCell(at),
                FormatCell(crossing.size),
                FormatCell(crossing.between),
                FormatCell(crossing.always ? 1 : 0),
                FormatCell(line.speedup.begin()->second),
                FormatCell(line.speedup.rbegin()->second)});
  crossings.rows.push_back(std::move(cells));
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

void DeriveCrossings(const Table& layers, Table& crossings) {
  for (const LayerKey& key : LayerKeys(layers)) {
    if (key == key.Standard()) continue;
    for (const auto& [along, fixed] : {std::pair{"dim", "tokens"}, std::pair{"tokens", "dim"}}) {
      for (const auto& [at, line] : LinesOf(layers, key, along, fixed)) {
        AppendLine(key, along, at, line, crossings);
      }
    }
  }
}

}  // namespace numsim::experiments::linear_speed
