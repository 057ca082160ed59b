// Presets: named configurations, the files of config/presets, whose first line says what they are.
#include <fmt/format.h>

#include <array>

#include "numsim/base/nearest_name.h"
#include "numsim/config/config.h"
#include "numsim/config/internal/preset_files.h"

namespace numsim {
namespace {

constexpr auto kPresets = [] {
  std::array<TrainPreset, std::size(kPresetFiles)> presets;
  for (size_t i = 0; i < presets.size(); ++i) {
    const std::string_view text = kPresetFiles[i].second;  // "# TEXT", then the configuration
    presets[i] = {kPresetFiles[i].first, text.substr(2, text.find('\n') - 2)};
  }
  return presets;
}();

}  // namespace

std::span<const TrainPreset> TrainPresets() { return kPresets; }

TrainConfig MakeTrainPreset(std::string_view name) {
  std::string valid;
  for (const auto& [known, text] : kPresetFiles) {
    if (known == name) return ParseTrainConfig(text, fmt::format("preset {}", name), {}, {});
    valid += fmt::format("{}{}", valid.empty() ? "" : ", ", known);
  }
  throw NotOneOf("preset", name, valid);
}

}  // namespace numsim
