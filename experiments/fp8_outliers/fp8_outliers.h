// The experiment `fp8-outliers`: outliers of SwiGLU under FP8 recipes, and Smooth-SwiGLU
// ([Fishman] sections 3, 4.4 and 6, appendices A.3 and A.4).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"

namespace numsim::experiments {

study::Study Fp8OutliersStudy();
Experiment Fp8Outliers();

namespace fp8_outliers {

// Places of an arm's choices.
enum Place : size_t { kPlant, kRecipe, kLr };

inline constexpr const char *kRunsTable = "runs", *kTraceTable = "trace", *kArmsTable = "arms";
inline constexpr const char* kBf16 = "bf16";
inline constexpr const char* kAllRecipes = "all";  // in the arm of a trial with a plant

// How a training meets outliers, as text KIND or KIND:SIZE. The planted ones go on from a clean
// checkpoint in bf16.
inline constexpr const char* kScratch = "scratch";  // no plant: from the first step in the recipe
inline constexpr const char* kNone = "none";        // no plant
inline constexpr const char* kOnce = "once";        // a rare token in one step
inline constexpr const char* kEvery = "every";      // the rare token every --period steps
inline constexpr const char* kWeights = "weights";  // a channel whose weights grow

struct PlantKind {
  std::string kind;
  double size = 1;  // of the channel's largest product, over the largest of the clean model
};
// Returns the parts of such a text. Throws Error naming --plants.
PlantKind ParsePlant(const std::string& text);
// Returns the texts of --plants of that kind, the one with the largest size first.
std::vector<std::string> PlantsOf(const Settings& settings, std::string_view kind);

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

// Returns the columns of the outliers, which a training from scratch does not meet.
std::vector<study::EndColumn> OutlierColumns();
study::ProbeSpec Trace();
// Measures all recipes from one checkpoint.
Rows MeasurePlanted(const study::Study& study, const Settings& settings, const Trial& trial);
std::vector<Row> Arms(const study::Results& results);
study::Named<std::function<Figure(const study::Results&)>> Figures();

// Compares two recipes of a plant.
Evidence Compare(const study::Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts);
study::Named<std::function<Evidence(const study::Results&)>> EvidenceFunctions();

}  // namespace fp8_outliers
}  // namespace numsim::experiments
