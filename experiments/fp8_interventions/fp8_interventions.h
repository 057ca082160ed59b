// The experiment `fp8-interventions`: training with tensor-wise low precision, and interventions
// that keep it from failing (Figure 2, Section 2.3 of [SwitchBack]).
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
inline constexpr std::string_view kQuantizedTable = "quantised";
inline constexpr std::string_view kOutcomesTable = "outcomes";

// A combination of the paper's interventions against failure.
struct Intervention {
  bool clip = false;         // gradients of a norm above --clip-norm are scaled down to it
  bool qk_norm = false;      // queries and keys are normalised
  bool layer_scale = false;  // layer-scale that starts at zero
  // No intervention and no stress either (--plant-*, --input-tail): the control that shows whether
  // the stress harms bf16 itself.
  bool unstressed = false;

  // Returns "none", "unstressed", or the parts joined by '+' in the order of the fields:
  // "clip+layer-scale".
  std::string Text() const;
  friend bool operator==(const Intervention&, const Intervention&) = default;
};
inline const Intervention kUnstressed{.unstressed = true};
// Parses such a text, with parts in any order. Throws Error naming --interventions.
Intervention ParseIntervention(const std::string& text);
// Returns the interventions of --interventions, each once, with none first.
std::vector<Intervention> InterventionsOf(const Settings& settings);

// The formats of tensor-wise layers, in canonical text.
struct Precision {
  std::string forward;   // format of X and W
  std::string gradient;  // format of G

  // Returns "e4m3fn/e5m2", or "e5m2" if both formats are the same. e3m2fn and e2m3fn have their
  // shorter names of OCP, "e3m2" and "e2m3".
  std::string Text() const;
  friend bool operator==(const Precision&, const Precision&) = default;
};
// The baseline: layers of kind standard with bf16 operands.
inline const Precision kBaseline{"bf16", "bf16"};
// Parses FORWARD[/GRADIENT]; without GRADIENT both formats are FORWARD. Throws Error naming --formats.
Precision ParsePrecision(const std::string& text);
// Returns the precisions of --formats, each once, with the baseline first.
std::vector<Precision> PrecisionsOf(const Settings& settings);
// Returns true for the paper's formats: E4M3, with E5M2 for gradients, either those of OCP or those
// of bitsandbytes.
bool IsPapers(const Precision& precision);

// Returns a text of results written before November 2026 with today's names of formats.
std::string FromFormerNames(const std::string& text);

// Returns the training configuration of an intervention in a precision; `seed` is the seed of
// weights and batches.
TrainConfig ConfigOf(const Settings& settings,
                     const Intervention& intervention,
                     const Precision& precision,
                     uint64_t seed);

std::vector<Option> Options();
std::vector<TableSpec> TableSpecs();
// Throws Error naming a bad option.
std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
std::vector<PaperSetting> PaperSettings();
std::string Notes(const Settings& settings, const Tables& tables);

// Returns the rows of an intervention in a format; both are texts of columns.
Frame Select(const Frame& frame, const std::string& intervention, const std::string& format);
// Returns what is done to make small models fail, which the paper does not do; "" for nothing.
std::string StressOf(const Settings& settings);
// Returns true if the training of a row of final.csv diverged or collapsed.
bool Failed(const Frame& row);
// Returns the rows after the last block.
Frame AfterLastBlock(const Frame& features);
// Returns the rows of the last step of each training.
Frame LastRecords(const Frame& features);
// Returns the tower whose features are shown and judged: that of images if there is one.
std::string TowerOf(const Frame& features);

// A training has collapsed if its validation loss is less than this share below the loss of a model
// that guesses at random.
inline constexpr double kCollapsed = 0.05;

}  // namespace fp8_interventions
}  // namespace numsim::experiments
