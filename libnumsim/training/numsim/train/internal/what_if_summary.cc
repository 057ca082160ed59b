#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "numsim/train/internal/what_if_error.h"
#include "numsim/train/internal/what_if_report.h"
#include "numsim/train/internal/what_if_rows.h"

namespace numsim {
namespace {

constexpr size_t kMostPlaces = 10;  // layers, and steps of a layer

std::string WhatIfLine(std::string_view name, const std::string& text) {
  return fmt::format("{:<28}{}\n", name, text);
}

std::string Place(const WhatIfRow& row) {
  return fmt::format("{} at step {}", row.layer, row.step);
}

// Returns the first row with the lowest SQNR. NaN, of a tensor of zeros, is never it unless all are.
const WhatIfRow& LowestSqnr(const std::vector<WhatIfRow>& rows) {
  const WhatIfRow* lowest = &rows.front();
  for (const WhatIfRow& row : rows) {
    if (row.sqnr_db < lowest->sqnr_db ||
        (std::isnan(lowest->sqnr_db) && !std::isnan(row.sqnr_db))) {
      lowest = &row;
    }
  }
  return *lowest;
}

std::string WorstText(const std::vector<WhatIfRow>& rows) {
  const WhatIfRow& lowest = LowestSqnr(rows);
  const WhatIfRow& most =
      *std::max_element(rows.begin(), rows.end(), [](const WhatIfRow& x, const WhatIfRow& y) {
        return x.overflow < y.overflow;
      });
  const std::string overflow =
      most.overflow > 0 ? fmt::format("largest overflow {:.3g}, {}", most.overflow, Place(most))
                        : "no overflow";
  return fmt::format("lowest SQNR {:.3g} dB, {}; {}", lowest.sqnr_db, Place(lowest), overflow);
}

// Returns "1, 2, 3", with "..." for what is beyond kMostPlaces.
template <typename Value>
std::string First(const std::vector<Value>& values, std::string_view separator) {
  const auto named = std::span(values).first(std::min(values.size(), kMostPlaces));
  const bool all = named.size() == values.size();
  return fmt::format(
      "{}{}", fmt::join(named, separator), all ? "" : fmt::format("{}...", separator));
}

// Returns the layers, in the order of their first rows, with the steps at which the gradient is too
// small for its noise.
std::string IneffectiveText(const std::vector<WhatIfRow>& rows) {
  std::vector<std::pair<std::string, std::vector<uint64_t>>> layers;
  size_t count = 0;
  for (const WhatIfRow& row : rows) {
    if (!(row.gradient_to_noise < kEffectiveGradientToNoise)) continue;
    ++count;
    auto found = std::find_if(
        layers.begin(), layers.end(), [&](const auto& layer) { return layer.first == row.layer; });
    if (found == layers.end()) found = layers.insert(layers.end(), {row.layer, {}});
    found->second.push_back(row.step);
  }
  if (count == 0) return fmt::format("0 of {}", rows.size());
  std::vector<std::string> texts;
  texts.reserve(layers.size());
  for (const auto& [layer, steps] : layers) {
    texts.push_back(
        fmt::format("{} at step{} {}", layer, steps.size() == 1 ? "" : "s", First(steps, ", ")));
  }
  return fmt::format("{} of {}: {}", count, rows.size(), First(texts, "; "));
}

}  // namespace

std::string WhatIfText(const TrainConfig& config, const std::filesystem::path& directory) {
  const WhatIfTable table = ReadWhatIf(config, directory);
  std::string text;
  for (const WhatIfRecipe& recipe : config.what_if.recipes) {
    text += WhatIfLine("what if", ToString(recipe));
    for (const std::string tensor : kWhatIfTensors) {
      const auto found = table.find({ToString(recipe), tensor});
      if (found == table.end()) continue;
      text += WhatIfLine("  " + tensor, WorstText(found->second));
      if (tensor == "G")
        text += WhatIfLine("  |G| < sqrt(3) noise", IneffectiveText(found->second));
    }
  }
  return text;
}

}  // namespace numsim
