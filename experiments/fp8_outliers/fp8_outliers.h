// The experiment `fp8-outliers`: outliers of SwiGLU under FP8 recipes, and Smooth-SwiGLU
// ([Fishman] sections 3, 4.4 and 6, appendices A.3 and A.4).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment Fp8Outliers();

namespace fp8_outliers {

inline constexpr std::string_view kRunsTable = "runs";
inline constexpr std::string_view kTraceTable = "trace";
inline constexpr std::string_view kArmsTable = "arms";

// How a training meets outliers, as text KIND or KIND:SIZE. The planted ones go on from a clean
// checkpoint in bf16.
inline constexpr std::string_view kScratch =
    "scratch";                                       // no plant: from the first step in the recipe
inline constexpr std::string_view kNone = "none";    // no plant
inline constexpr std::string_view kOnce = "once";    // a rare token in one step
inline constexpr std::string_view kEvery = "every";  // the rare token every --period steps
inline constexpr std::string_view kWeights = "weights";  // a channel whose weights grow

struct PlantKind {
  std::string kind;
  double size = 1;  // of the channel's largest product, over the largest of the clean model
};
// Returns the parts of such a text. Throws Error naming --plants.
PlantKind ParsePlant(const std::string& text);
// Returns the texts of --plants of that kind, the one with the largest size first.
std::vector<std::string> PlantsOf(const Settings& settings, std::string_view kind);

// A recipe of the study: that of a whole model, or one with another history or MLP.
struct Recipe {
  std::string_view name;
  std::string_view meaning;
  void (*apply)(const Settings& settings, TrainConfig& config);
};
const std::vector<Recipe>& Recipes();
// Returns the recipe of that name. Throws Error naming the option and the recipes.
const Recipe& FindRecipe(std::string_view option, std::string_view name);

struct Arm {
  std::string plant, recipe;
  std::string lr;  // as text of --lr or --scratch-lr

  std::string Text() const { return plant + " / " + recipe + " / " + lr; }
  friend bool operator==(const Arm&, const Arm&) = default;
};
Arm ArmOf(const Frame& row);
// Returns the arms of a trial: all recipes of a plant, or a single recipe from scratch.
std::vector<Arm> ArmsOf(const Settings& settings, const Trial& trial);
TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed);

// Returns the names of the planted blocks. Throws Error naming --blocks.
std::vector<std::string> BlocksOf(const Settings& settings);

// The steps of a planted training. Steps before `clean` are those of the checkpoint.
struct Schedule {
  uint64_t clean = 0, event = 0, end = 0;  // event: the first step with an outlier
};
Schedule ScheduleOf(const Settings& settings);

// The two failures of the quantiser of the input of w3, in any planted block. A step is bad if either
// occurs.
inline constexpr double kWorstSqnr = 20;  // dB; E4M3 under a fitting scale has about 31
inline constexpr double kMostZeros = 0.5;
// Elements saturate, so that the ratio of signal to noise is below kWorstSqnr.
bool Saturates(double overflow, double sqnr);
// More than kMostZeros of the nonzero elements become zero.
bool Flushes(double underflow);

std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();

}  // namespace fp8_outliers
}  // namespace numsim::experiments
