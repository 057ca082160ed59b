// The study `fp8-outliers`: what its file cannot say about arms.
#include "experiments/fp8_outliers/fp8_outliers.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/runner/settings.h"
#include "experiments/study/outcomes.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace fp8_outliers {
namespace {

using namespace study;

Choice Plant(const std::string& text) {
  ParsePlant(text);
  return {text};
}

void CheckRecipe(const Study& study, const char* option, const std::string& recipe) {
  try {
    ChoiceOf(study.axes[kRecipe], recipe);
  } catch (const Error& error) {
    throw Error::Format("--{}: {}", option, error.what());
  }
}

void CheckLists(const Study& study, const Settings& settings) {
  ScheduleOf(settings);
  const std::vector<std::string> plants = settings.GetList("plants");
  CheckDistinct("plants", plants);
  for (const std::string& plant : plants) ParsePlant(plant);
  const std::vector<std::string> recipes = settings.GetList("recipes");
  CheckDistinct("recipes", recipes);
  for (const std::string& recipe : recipes) CheckRecipe(study, "recipes", recipe);
  if (recipes.front() != kBf16) {
    throw Error::Format("--recipes: '{}' comes first, expected bf16", recipes.front());
  }
  for (const std::string& recipe : recipes) {
    if (!recipe.ends_with("gelu")) continue;
    throw Error::Format("--recipes: '{}' has no SwiGLU; --scratch takes it", recipe);
  }
  BlocksOf(settings);
}

// Returns an arm for each plant, which stands for all recipes, and those from scratch, each once.
std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  CheckLists(study, settings);
  std::vector<Arm> arms;
  const auto add = [&](const char* option, const std::string& recipe, const std::string& lr) {
    CheckRecipe(study, option, recipe);
    const Arm arm{kScratch, recipe, lr};
    if (std::ranges::count(arms, arm) == 0) arms.push_back(arm);
  };
  for (const std::string& plant : settings.GetList("plants")) {
    arms.push_back({plant, kAllRecipes, settings.Get("lr")});
  }
  for (const std::string& recipe : settings.GetListOrNone("scratch")) {
    add("scratch", recipe, settings.Get("lr"));
  }
  for (const std::string& recipe : settings.GetListOrNone("scratch-bf16")) {
    for (const std::string& lr : settings.GetList("scratch-lr")) add("scratch-bf16", recipe, lr);
  }
  return arms;
}

std::vector<Arm> RecipesOf(const Settings& settings, const Arm& trial) {
  std::vector<Arm> arms;
  if (trial[kRecipe] != kAllRecipes) return arms;
  for (const std::string& recipe : settings.GetList("recipes")) {
    arms.push_back({trial[kPlant], recipe, trial[kLr]});
  }
  return arms;
}

// Returns the function that gives the plant of that kind with the largest size; the kind alone, which is no
// plant, if --plants leaves it out.
std::function<std::string(const Settings&)> Largest(const char* kind) {
  return [kind](const Settings& settings) {
    const std::vector<std::string> plants = PlantsOf(settings, kind);
    return plants.empty() ? std::string(kind) : plants.front();
  };
}

Functions OwnFunctions() {
  return {
      .choices = {{"plant", Plant}},
      .values = {{kOnce, Largest(kOnce)}, {kEvery, Largest(kEvery)}, {kWeights, Largest(kWeights)}},
      .outcomes = {{"valid_loss", LossOrStart}},
      .evidence = EvidenceFunctions(),
      .probes = {{"trace", Trace()}},
      .columns = OutlierColumns(),
      .tables = {{"arms", Arms}},
      .figures = Figures()};
}

}  // namespace
}  // namespace fp8_outliers

study::Study Fp8OutliersStudy() {
  using namespace fp8_outliers;
  Study study = ReadStudy(StudyText("fp8_outliers"), "fp8_outliers/study.toml", OwnFunctions());
  study.computed = [](const Settings& settings, const Arm&) -> Keys {
    return {fmt::format("train.steps={}", ScheduleOf(settings).end)};
  };
  study.arms = ArmsOf;
  study.branches = {RecipesOf, MeasurePlanted};
  study.centre = [](const Settings& settings) -> Arm { return {kNone, kBf16, settings.Get("lr")}; };
  study.common.compare = Compare;
  return study;
}

Experiment Fp8Outliers() { return study::MakeExperiment(Fp8OutliersStudy()); }

}  // namespace numsim::experiments
