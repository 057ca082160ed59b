// The experiment `moment-formats`: Adam's moments in small formats (Figure 5, Tables 1 and 4 of
// [Fishman]). study.toml says what it varies, measures and claims.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"

namespace numsim::experiments {

study::Study MomentFormatsStudy();
Experiment MomentFormats();

namespace moment_formats {

using study::Arm;
using study::Results;

// The places of the axes in an arm.
enum Place : size_t { kM, kV, kEpsilon, kUpdateFrom, kLr };

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

// Returns every pair of the settings once: the baseline, the grid of --m, --v and --scalings, then
// --pairs. Throws Error naming a bad option.
std::vector<MomentPair> PairsOf(const Settings& settings);
// Returns all arms. fp32 moments are the same before and after storage, so the baseline is trained
// only for the first of --update-from.
std::vector<Arm> ArmsOf(const study::Study& study, const Settings& settings);

// The probes: shares of moments that are stored as zero, and the spread of v in fp32.
study::ProbeSpec Flushed();
study::ProbeSpec SpreadOfV();

// The rows of the derived tables.
std::vector<Row> PairRows(const Results& results);
std::vector<Row> PhaseRows(const Results& results);
std::vector<Row> MemoryRows(const Results& results);

study::Named<std::function<Figure(const Results&)>> Figures();
// Return the figures of gaps against epsilon and learning rate; without panels if there is one of them.
Figure EpsilonFigure(const Results& results);
Figure PhaseFigure(const Results& results);

// Compares pairs with fp32 at the paper's epsilon.
Evidence Compare(const Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts);
// Compares the gap of v in E4M3 at the smallest epsilon of a run with that at the largest.
Evidence EpsilonEvidence(const Results& results, const std::string& update);
Evidence MemoryEvidence(const Results& results);
// Returns the number of parameters of the models of a run, which decides the margins of losses.
double ParametersOf(const Results& results);
std::string Notes(const Results& results);

// Returns the rows of the table `final` at the best learning rate of each pair, epsilon and
// update_from: that of the least mean loss over seeds.
Frame BestRates(const Frame& final_table);
// Returns the rows of a table at an epsilon and update, with those of the baseline at that epsilon.
Frame OfRegime(const Frame& frame, std::string_view epsilon, std::string_view update_from);

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

}  // namespace moment_formats
}  // namespace numsim::experiments
