// The experiment `fp8-interventions`: training with tensor-wise low precision, and what keeps it
// from failing (Figure 2, Section 2.3 of [SwitchBack]).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment Fp8Interventions();

namespace fp8_interventions {

inline constexpr std::string_view kCurvesTable = "curves";
inline constexpr std::string_view kFinalTable = "final";
inline constexpr std::string_view kFeaturesTable = "features";
inline constexpr std::string_view kQuantisedTable = "quantised";
inline constexpr std::string_view kOutcomesTable = "outcomes";

// What is done against failure, of the paper's interventions.
struct Intervention {
  bool clip = false;         // gradients of a norm above --clip-norm are scaled down to it
  bool qk_norm = false;      // norm of queries and keys
  bool layer_scale = false;  // layer-scale that begins at zero

  // "none"; parts joined by '+' in the order of the fields: "clip+layer-scale".
  std::string Text() const;
  friend bool operator==(const Intervention&, const Intervention&) = default;
};
// Parts in any order. Throws Error naming --interventions.
Intervention ParseIntervention(const std::string& text);
// Those of --interventions, each once, with none first.
std::vector<Intervention> InterventionsOf(const Settings& settings);

// The formats of tensor-wise layers, in canonical text.
struct Precision {
  std::string forward;   // of X and W
  std::string gradient;  // of G

  // "e4m3fn/e5m2"; "e3m3" where both are one. Rungs of the ladder bear their names.
  std::string Text() const;
  friend bool operator==(const Precision&, const Precision&) = default;
};
// Layers of kind standard with bf16 operands.
inline const Precision kBaseline{"bf16", "bf16"};
// FORWARD[/GRADIENT], formats or rungs of the ladder; without GRADIENT both are one. Throws Error
// naming --formats.
Precision ParsePrecision(const std::string& text);
// Those of --formats, each once, with the baseline first.
std::vector<Precision> PrecisionsOf(const Settings& settings);
// The formats that the paper means: E4M3 with E5M2 for gradients, of OCP or as bitsandbytes has
// them.
bool IsPapers(const Precision& precision);

// Formats below E4M3, each a bit or two poorer, by which a failure of large models comes into reach
// of small ones. All codes are numbers.
struct Rung {
  std::string_view name;    // as --formats and labels have it
  std::string_view format;  // its text
};
std::span<const Rung> PrecisionLadder();

// The training of an intervention in a precision; `seed` is that of weights and batches.
TrainConfig ConfigOf(const Settings& settings,
                     const Intervention& intervention,
                     const Precision& precision,
                     uint64_t seed);

std::vector<Option> Options();
std::vector<TableSpec> TableSpecs();
// Throws Error naming the option.
std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// When features are measured.
inline constexpr std::string_view kStart = "start";
inline constexpr std::string_view kEnd = "end";

// A training has collapsed when its validation loss is less than this share below that of a model
// that tells nothing apart.
inline constexpr double kCollapsed = 0.05;

// Verdicts of outcomes.csv: at least one seed diverged; at least half of them collapsed; fewer did;
// the interval of the gap to bf16 with the same intervention is above 0; none of it.
inline constexpr std::string_view kDiverged = "diverged";
inline constexpr std::string_view kCollapsedVerdict = "collapsed";
inline constexpr std::string_view kUnsteady = "unsteady";
inline constexpr std::string_view kBehind = "behind";
inline constexpr std::string_view kStable = "stable";

}  // namespace fp8_interventions
}  // namespace numsim::experiments
