// The recipes, the arms and their configurations.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"

namespace numsim::experiments::fp8_outliers {
namespace {

void Delayed(size_t history, AmaxAlgorithm algorithm, TrainConfig& config) {
  ApplyTrainRecipe("fp8-delayed", config);
  config.linear.all.delayed->history = history;
  config.linear.all.delayed->algorithm = algorithm;
}

size_t HistoryOf(const Settings& settings) {
  return static_cast<size_t>(settings.GetInteger("history", 1, 65536));
}

template <size_t kHistory>
void Max(const Settings& /*settings*/, TrainConfig& config) {
  Delayed(kHistory, AmaxAlgorithm::kMax, config);
}

// fp8-delayed with the option's history and another MLP.
template <MlpKind kMlp>
void DelayedMlp(const Settings& settings, TrainConfig& config) {
  Delayed(HistoryOf(settings), AmaxAlgorithm::kMax, config);
  config.model.mlp = kMlp;
}

template <MlpKind kMlp>
void Bf16Mlp(const Settings& /*settings*/, TrainConfig& config) {
  ApplyTrainRecipe("bf16", config);
  config.model.mlp = kMlp;
}

}  // namespace

const std::vector<Recipe>& Recipes() {
  using S = Settings;
  using C = TrainConfig;
  // clang-format off
  static const std::vector<Recipe> recipes = {
      {"bf16",              "bf16", Bf16Mlp<MlpKind::kSwiglu>},
      {"te-max",            "Transformer Engine's delayed scaling: the largest of --history steps", DelayedMlp<MlpKind::kSwiglu>},
      {"te-max-16",         "the largest of 16 steps", Max<16>},
      {"te-max-64",         "the largest of 64 steps", Max<64>},
      {"te-recent",         "the most recent maximum", [](const S&, C& c) { Delayed(1, AmaxAlgorithm::kMostRecent, c); }},
      {"te-window-16",      "windows of 16 steps that do not overlap", [](const S&, C& c) { Delayed(16, AmaxAlgorithm::kWindow, c); }},
      {"te-current",        "current scaling", [](const S&, C& c) { ApplyTrainRecipe("fp8-current", c); }},
      {"row",               "scales per token and per row of the weights", [](const S&, C& c) { ApplyTrainRecipe("fp8-row-wise", c); }},
      {"block",             "scales per 128 elements", [](const S&, C& c) { ApplyTrainRecipe("fp8-block", c); }},
      {"w3-bf16",           "te-max with the input of w3 in bf16 (Figure 3)", [](const S& s, C& c) {
         ApplyTrainRecipe("fp8-delayed-w3-bf16", c);
         c.linear.all.delayed->history = c.linear.overrides[0].precision.delayed->history = HistoryOf(s);
       }},
      {"smooth",            "te-max with Smooth-SwiGLU per channel (Equation 3)", DelayedMlp<MlpKind::kSmoothSwiglu>},
      {"smooth-token",      "te-max with the code's Smooth-SwiGLU, per token", DelayedMlp<MlpKind::kSmoothSwigluToken>},
      {"clamp",             "te-max with a clamped SwiGLU", DelayedMlp<MlpKind::kClampedSwiglu>},
      {"fishman",           "the paper's code without Smooth-SwiGLU", [](const S&, C& c) { ApplyTrainRecipe("fp8-fishman", c); }},
      {"fishman-smooth",    "the paper's code", [](const S&, C& c) { ApplyTrainRecipe("fp8-fishman-smooth", c); }},
      {"bf16-smooth",       "bf16 with Smooth-SwiGLU per channel", Bf16Mlp<MlpKind::kSmoothSwiglu>},
      {"bf16-smooth-token", "bf16 with the code's Smooth-SwiGLU", Bf16Mlp<MlpKind::kSmoothSwigluToken>},
      {"bf16-gelu",         "bf16 with GELU", Bf16Mlp<MlpKind::kGelu>},
      {"te-max-gelu",       "te-max with GELU (Figure 12)", DelayedMlp<MlpKind::kGelu>},
  };
  // clang-format on
  return recipes;
}

const Recipe& FindRecipe(std::string_view option, std::string_view name) {
  std::string names;
  for (const Recipe& recipe : Recipes()) {
    if (recipe.name == name) return recipe;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", recipe.name);
  }
  throw Error::Format(
      "--{}: '{}' is not one of {}{}", option, name, names, DidYouMean(name, names));
}

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

Arm ArmOf(const Frame& row) { return {row.Text("plant"), row.Text("recipe"), row.Text("lr")}; }

std::vector<Arm> ArmsOf(const Settings& settings, const Trial& trial) {
  const std::string& plant = trial.parameters.at("plant");
  if (plant == kScratch) return {{plant, trial.parameters.at("recipe"), trial.parameters.at("lr")}};
  std::vector<Arm> arms;
  for (const std::string& recipe : settings.GetList("recipes")) {
    arms.push_back({plant, recipe, settings.Get("lr")});
  }
  return arms;
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

TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  TrainConfig config;
  config.model.kind = ModelKind::kLlama;
  Settings own = settings;
  own.options["lr"] = arm.lr;
  own.options["steps"] = fmt::format("{}", ScheduleOf(settings).end);
  ReadTraining(own, seed, config);
  ReadTextData(settings, config.data);
  FindRecipe("recipes", arm.recipe).apply(settings, config);
  config.train.diverged_above = 0;
  config.telemetry.tensors_every = 0;
  return config;
}

}  // namespace numsim::experiments::fp8_outliers
