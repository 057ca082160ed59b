// The experiment `swiglu-alignment`: the alignment of a SwiGLU channel's weights, and the outliers
// that it brings (sections 4.1 to 4.3 of [Fishman]).
//
// w1 is the weight of the linear branch, w2 that of the gate. An *outlier channel* is the channel of all
// MLPs whose activation is the largest over a batch at the end of the training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/swiglu_alignment/neuron.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment SwigluAlignment();

namespace swiglu_alignment {

// Tables of the exact part.
inline constexpr std::string_view kStationaryTable = "stationary";
inline constexpr std::string_view kStartsTable = "starts";
inline constexpr std::string_view kGrowthTable = "growth";
// Tables of the trainings.
inline constexpr std::string_view kRunsTable = "runs";
inline constexpr std::string_view kPointsTable = "points";
inline constexpr std::string_view kChannelsTable = "channels";
inline constexpr std::string_view kElementsTable = "elements";
inline constexpr std::string_view kGatesTable = "gates";
inline constexpr std::string_view kArmsTable = "arms";

// ---- the exact part

// The regularisation of the neurons that Adam trains; they are also trained without any.
inline constexpr double kNeuronDecay = 1e-2;

struct StationaryPoint {
  std::vector<double> w;
  double gradient = 0;         // its norm
  double least_curvature = 0;  // least eigenvalue of the Hessian: positive at a minimum
};
// Returns the stationary point that Newton's method finds from w.
StationaryPoint FindStationaryPoint(const NeuronProblem& problem, std::vector<double> w);

// Return the rows of the tables of the exact part.
std::vector<Row> StationaryRows();
std::vector<Row> StartRows(const Settings& settings, uint64_t seed);
std::vector<Row> GrowthRows();

// ---- the trainings

// Everything in which two trainings differ except for the seed, as texts of the options.
struct Arm {
  std::string size, lr, weight_decay, steps;

  // Returns "2x32 lr 4e-3 weight decay 0.1 steps 600", unique per arm.
  std::string Text() const;
  friend bool operator==(const Arm&, const Arm&) = default;
};
// The columns of a table that name its arm.
inline const std::initializer_list<std::string_view> kArmKey = {
    "size", "lr", "weight_decay", "steps"};
std::vector<Column> ArmColumns();
// Returns the arm of a row of a table, or of a trial.
Arm ArmOf(const Frame& row);
Arm ArmOf(const Trial& trial);
// Returns the cells of an arm, in the order of kArmKey.
Row CellsOf(const Arm& arm);

// Returns the arm from which every axis of the options departs.
Arm Centre(const Settings& settings);
// Returns every arm once, and checks the options. Throws Error naming a bad option.
std::vector<Arm> ArmsOf(const Settings& settings);
TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed);

// The part of a training after which the paper looks at "an early training stage": 8 of 330 billion
// tokens.
inline constexpr uint64_t kEarlyPart = 40;
// Returns the step of the early record of a training.
uint64_t EarlyStep(uint64_t steps);
// Returns the steps of a training's records, ascending: 0, the early one, and --points of equal
// distance.
std::vector<uint64_t> RecordSteps(const Settings& settings, uint64_t steps);

std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
Rows MeasureTraining(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
std::vector<ClaimSpec> ExactClaims();
std::string Notes(const Settings& settings, const Tables& tables);
std::vector<Option> Options();
std::vector<TableSpec> TableSpecs();

}  // namespace swiglu_alignment
}  // namespace numsim::experiments
