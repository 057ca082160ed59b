// The plants, where they stand and when.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"

namespace numsim::experiments::fp8_outliers {

PlantKind ParsePlant(const std::string& text) {
  const size_t colon = text.find(':');
  PlantKind plant{text.substr(0, colon)};
  const bool sized = plant.kind == kOnce || plant.kind == kEvery || plant.kind == kWeights;
  if (!sized && plant.kind != kNone) {
    throw Error::Format("--plants: '{}' is not one of none, once:SIZE, every:SIZE, weights:SIZE",
                        text);
  }
  if (sized != (colon != std::string::npos)) {
    throw Error::Format("--plants: '{}': expected {}{}", text, plant.kind, sized ? ":SIZE" : "");
  }
  if (!sized) return plant;
  Settings size;
  size.options["plants"] = text.substr(colon + 1);
  plant.size = size.GetDouble("plants", 1, 1e12);
  return plant;
}

std::vector<std::string> PlantsOf(const Settings& settings, std::string_view kind) {
  std::vector<std::string> plants = settings.GetList("plants");
  std::erase_if(plants, [&](const std::string& text) { return ParsePlant(text).kind != kind; });
  std::ranges::stable_sort(
      plants, std::greater(), [](const std::string& text) { return ParsePlant(text).size; });
  return plants;
}

std::vector<std::string> BlocksOf(const Settings& settings) {
  const auto layers = settings.GetInteger("layers", 1, 1000);
  std::vector<std::string> blocks;
  if (settings.Get("blocks") == "all") {
    for (int64_t block = 0; block < layers; ++block)
      blocks.push_back(fmt::format("blocks.{}", block));
    return blocks;
  }
  for (const int64_t block : settings.GetIntegers("blocks", 0, layers - 1)) {
    blocks.push_back(fmt::format("blocks.{}", block));
  }
  CheckDistinct("blocks", blocks);
  return blocks;
}

Schedule ScheduleOf(const Settings& settings) {
  Schedule schedule;
  schedule.clean = static_cast<uint64_t>(settings.GetInteger("steps", 2, kMostSteps));
  const auto after = static_cast<uint64_t>(settings.GetInteger("after", 2, kMostSteps));
  const auto lead = static_cast<uint64_t>(settings.GetInteger("lead", 1, kMostSteps));
  if (lead >= after) {
    throw Error::Format("--lead {}: the outlier comes after the {} steps of --after", lead, after);
  }
  schedule.event = schedule.clean + lead;
  schedule.end = schedule.clean + after;
  return schedule;
}

}  // namespace numsim::experiments::fp8_outliers
