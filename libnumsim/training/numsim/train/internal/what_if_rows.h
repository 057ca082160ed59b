// The rows of what_if.csv, by recipe and kind of tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/config/config.h"

namespace numsim {

inline constexpr const char* kWhatIfTensors[] = {"X", "W", "G"};

struct WhatIfRow {
  uint64_t step;
  std::string layer;
  double overflow, sqnr_db, gradient_to_noise;
};
// Keys: the text of a recipe, and X, W or G. Rows are in the order of the file.
using WhatIfTable = std::map<std::pair<std::string, std::string>, std::vector<WhatIfRow>>;

// Returns the rows of the file in `directory`; none if the configuration has no recipes. Throws Error
// as ReadCsv does.
WhatIfTable ReadWhatIf(const TrainConfig& config, const std::filesystem::path& directory);

}  // namespace numsim
