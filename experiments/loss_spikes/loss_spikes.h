// The experiment `loss-spikes`: loss spikes, RMS_t and update clipping (section 3 and appendices E
// and F of [SwitchBack]).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/stats/spikes.h"

namespace numsim::experiments {

Experiment LossSpikes();

namespace loss_spikes {

inline constexpr std::string_view kRunsTable = "runs";
inline constexpr std::string_view kEventsTable = "events";
inline constexpr std::string_view kTraceTable = "trace";
inline constexpr std::string_view kArmsTable = "arms";
inline constexpr std::string_view kPredictionTable = "prediction";

// Everything in which two trainings differ except for the seed, as texts of the options.
struct Arm {
  std::string model, size, batch, lr, warmup;
  std::string data;       // steady, new, or a planted change: jump:F, constant:F, contrast:F
  std::string beta2;      // a number, or 1-t^-L
  std::string optimizer;  // a name of OptimizerArms()

  // Returns "clip 2x32 batch 32 lr 4e-3 warmup 250 steady beta2 0.99 adamw", unique per arm.
  std::string Text() const;
  friend bool operator==(const Arm&, const Arm&) = default;
};
// The columns of a table that name its arm.
inline const std::initializer_list<std::string_view> kArmKey = {
    "model", "size", "batch", "lr", "warmup", "data", "beta2", "optimizer"};
const std::vector<Column>& ArmColumns();
// Returns the arm of a row of a table, or of a trial.
Arm ArmOf(const Frame& row);
Arm ArmOf(const Trial& trial);
// Returns the cells of an arm, in the order of kArmKey.
Row CellsOf(const Arm& arm);
// Returns the arm with another value of a field.
Arm With(Arm arm, std::string Arm::*field, std::string_view value);

inline constexpr std::string_view kAdamW = "adamw", kStable = "stable-adamw";
inline constexpr std::string_view kStudent = "mlp";
inline constexpr std::string_view kSteady = "steady", kNewData = "new";

// Begins the text of a schedule of beta2; its exponent follows.
inline constexpr std::string_view kSchedule = "1-t^-";

// An optimiser of the comparison: its name in --optimizers, and what it sets.
struct OptimizerArm {
  std::string_view name, meaning;
  void (*set)(TrainConfig& config);
};
const std::vector<OptimizerArm>& OptimizerArms();
// Returns the names of the published variants of StableAdamW, which begin with "stable-adamw:".
std::vector<std::string> StableVariants();

// Returns the arm from which every axis of the options departs, with that beta2.
Arm Centre(const Settings& settings, const std::string& beta2);
// Returns the student of --student-batch, at the rate of the centre.
Arm Student(const Settings& settings, const std::string& beta2);
// Returns the texts "1-t^-L" of the option --lambdas.
std::vector<std::string> SchedulesOf(const Settings& settings);
// Returns where a value of a numeric field lies along its axis: the number, or layers x width^2 of a
// size.
double PlaceOf(std::string Arm::*field, const std::string& value);
// Returns the option --change-step.
uint64_t ChangeStep(const Settings& settings);
// Returns every arm once, and checks the options. Throws Error naming a bad option.
std::vector<Arm> ArmsOf(const Settings& settings);

TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed);
// Returns the spike rule of an arm.
SpikeRule RuleOf(const Settings& settings, const Arm& arm);
// Returns the name of the parameter that reads the input: the patch embedding or the token embedding.
std::string InputParameter(std::string_view model);

// Returns the batches of a data set of which a training sees the first `old_batches`, again and again,
// before step `change`, and all from then on.
std::shared_ptr<const DataSource> GrowingData(std::shared_ptr<const DataSource> all,
                                              uint64_t change,
                                              uint64_t old_batches);

std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
std::string Notes(const Settings& settings, const Tables& tables);
std::vector<Option> Options();
std::vector<TableSpec> TableSpecs();

// Steps before --change-step with which those after it are compared.
inline constexpr uint64_t kBeforeChange = 50;

// The events of one run.
struct RunEvents {
  Arm arm;
  std::string seed;
  uint64_t first = 0, last = 0;                      // steps that count
  std::vector<uint64_t> spikes, lost;                // loss spikes, and the steps that each costs
  std::map<std::string, std::vector<uint64_t>> rms;  // RMS spikes by parameter
  std::optional<std::vector<uint64_t>> curvature;    // if it was measured
};
// Returns the events of AdamW runs. A scope is "steady" (the first model without a change of the
// data), "new" (after the change to new data, once the running mean has only seen these) or "student"
// (the student).
std::vector<RunEvents> EventsOf(const Settings& settings,
                                const Tables& tables,
                                std::string_view scope);

inline constexpr const char *kAny = "any", *kCurvature = "curvature";
inline constexpr const char *kSteadyScope = "steady", *kNewScope = "new",
                            *kStudentScope = "student";
// Returns the parameters that have RMS spikes in these runs, sorted, then "any" for those of all
// parameters and, if all runs have it, "curvature".
std::vector<std::string> PredictorsOf(const std::vector<RunEvents>& runs);
// Returns the events of a predictor in the runs that have it.
std::vector<EventSeries> SeriesOf(const std::vector<RunEvents>& runs, const std::string& predictor);

}  // namespace loss_spikes
}  // namespace numsim::experiments
