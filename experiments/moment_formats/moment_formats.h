// The experiment `moment-formats`: Adam's moments in small formats (Figure 5, Tables 1 and 4 of
// [Fishman]).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment MomentFormats();

namespace moment_formats {

inline constexpr std::string_view kCurvesTable = "curves";
inline constexpr std::string_view kFlushedTable = "flushed";
inline constexpr std::string_view kFinalTable = "final";
inline constexpr std::string_view kPairsTable = "pairs";
inline constexpr std::string_view kMemoryTable = "memory";
inline constexpr std::string_view kSpreadTable = "spread";
inline constexpr std::string_view kPhasesTable = "phases";

// The storage of both moments, as texts of moments/moment_format.h.
struct MomentPair {
  std::string m, v;

  std::string Text() const { return m + " / " + v; }
  friend bool operator==(const MomentPair&, const MomentPair&) = default;
};
inline const MomentPair kBaseline{"fp32", "fp32"};

// Returns the pair of a row of a table.
MomentPair PairOf(const Frame& row);
// Returns the rows of the baseline.
Frame BaselineRows(const Frame& frame);

// The settings of a training that do not concern formats, as texts of the options.
struct Regime {
  std::string epsilon, update_from, lr;
};

// One training: its formats and the rest of its settings.
struct Arm {
  MomentPair pair;
  Regime regime;
};
// Returns all arms. fp32 moments are the same before and after storage, so the baseline is trained
// only for the first of --update-from. Throws Error naming a bad option.
std::vector<Arm> ArmsOf(const Settings& settings);

// Returns every pair of the settings once: the baseline, the grid of --m, --v and --scalings, then
// --pairs. Throws Error naming a bad option.
std::vector<MomentPair> PairsOf(const Settings& settings);

// Returns the arm of a trial.
Arm ArmOf(const Trial& trial);

// Returns the training configuration of an arm; `seed` is the seed of weights and batches.
TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
// Returns the figures of gaps against epsilon and learning rate, if there are several.
std::vector<Figure> PhaseFigures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
// Returns the smallest difference of losses that counts for models of a run, in nats per token.
double LossMarginOf(const Settings& settings);
std::string Notes(const Settings& settings, const Tables& tables);

// Returns the rows of the table `final` at the best learning rate of each pair, epsilon and
// update_from: that of the least mean loss over seeds.
Frame BestRates(const Frame& final_table);
// Returns the loss of a row of `final`. A training that diverged counts as no better than at its
// start.
double LossOf(const Frame& row);
// Returns the rows of a table at an epsilon and update, with those of the baseline at that epsilon.
// Trainings of another regime may scatter more, so they are not pooled with these.
Frame OfRegime(const Frame& frame, std::string_view epsilon, std::string_view update_from);
// Returns the losses of rows of `final` at the best learning rates. Arms are named by ArmName.
OutcomeTable Losses(const Frame& final_table);
std::string ArmName(const MomentPair& pair, std::string_view epsilon, std::string_view update_from);
// Returns the value of the baseline's column update_from: the first of --update-from.
std::string BaselineUpdate(const Tables& tables);

// Return the epsilon and the update at which the claims of the paper are tested and which figures
// show: the epsilon of the run that is nearest to the paper's, as text; `fresh`, as in the authors'
// code, if it is trained.
std::string ShownEpsilon(const Frame& final_table);
std::string ShownUpdate(const Frame& final_table);

// Returns the epsilon below which training is predicted to fail (docs/moments.md) from rows of the
// table `spread`; NaN if there are none, or if `v` does not have one scale per tensor. `beta1` is the
// decay of the first moment.
double PredictedEpsilon(const Frame& spread,
                        const std::string& v,
                        std::string_view update_from,
                        double beta1);

// Returns the format "A" of the storage "A@SCALING+sr".
std::string FormatPart(std::string_view storage);
// Returns the rest of the storage, "@SCALING+sr"; "" if there is none.
std::string StoragePart(std::string_view storage);

}  // namespace moment_formats
}  // namespace numsim::experiments
