// Probes look at a training of a study step by step and add rows to tables.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/shared/training.h"
#include "experiments/study/claim_row.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::study {

// A training that is being measured.
class Measurement {
 public:
  Measurement(const Study& study,
              const Settings& settings,
              const Arm& arm,
              uint64_t seed,
              Trainer& trainer);

  const Settings& settings;
  const Arm& arm;
  const uint64_t seed;
  Trainer& trainer;
  TrainingRows rows;
  double start_loss = 0;  // validation loss before the first step
  // Validation loss at the first of --validations; infinite if the training diverged before. NaN if the
  // study has no probe `validations` before the one that reads it.
  double early_loss = std::numeric_limits<double>::quiet_NaN();

  // Returns the validation with the current weights.
  const LossSum& Validation();
  double Loss() { return Validation().Mean(); }
  // Returns the loss of the end: infinite if the training diverged.
  double FinalLoss();
  bool Finished() const { return trainer.status() == TrainStatus::kFinished; }

 private:
  std::optional<uint64_t> validated_;  // steps taken
  LossSum validation_;
};

class Probe {
 public:
  virtual ~Probe() = default;
  // Are called before and after each step; the telemetry has the rows of the step.
  virtual void Before(Measurement& /*training*/) {}
  virtual void After(Measurement& /*training*/) {}
  // Is called before the first step, after each one at which telemetry.tensors_every is due, and at the
  // end.
  virtual void Moment(Measurement& /*training*/) {}
  virtual void Begin(Measurement& /*training*/) {}
  virtual void End(Measurement& /*training*/) {}
  // Lists the variables that are carried from one step to the next.
  virtual void Keep(StateArchive& /*archive*/) {}
};

// A table that is measured.
struct MeasuredTable {
  std::string name;
  std::vector<Column> columns;
  bool of_arms = true;  // axes and seed come before them
  bool timed = false;   // of trials that train nothing: as TableSpec::timed
};

struct ProbeSpec {
  std::vector<MeasuredTable> tables = {};
  std::function<std::unique_ptr<Probe>(const Measurement&)> make;
};

// A column of the table of trainings, with its cell at the end of one.
struct EndColumn {
  Column column;
  std::function<Cell(Measurement&)> cell;
};
// Return columns that several studies have.
EndColumn StatusColumn();
EndColumn StepsColumn();
EndColumn ParametersColumn();
EndColumn StartLossColumn();
EndColumn TrainLossColumn();
EndColumn EarlyLossColumn();  // Measurement::early_loss; the probe `validations` must come before
EndColumn ValidLossColumn();
EndColumn ZeroShotColumn();
EndColumn ChanceLossColumn();  // of a model that gives every answer the same probability

// Returns the probe of the table of trainings.
ProbeSpec EndOfTraining(std::string table, std::vector<EndColumn> columns);
// Returns the probe of the table `curves`: the training loss in `unit` with at least --records points.
ProbeSpec Curves(const std::string& unit);
inline constexpr int kMostValidations = 32;
// Returns the probe of the table `validations`: the validation loss, in `unit`, before the training, at its
// end, and after a half, a quarter, ... of its steps, --validations of them.
ProbeSpec Validations(const std::string& unit);
// Returns the probe of the table `features`: magnitudes of the residual stream after each block, on the
// first batch of validation.
ProbeSpec ResidualStream();
// Returns the probe of the table `quantised`: errors of X, W and G, mean over layers, of trainings that
// quantise by tensor.
ProbeSpec QuantizedOperands();

// Runs a training in a trial and returns the rows of its probes.
Rows MeasureTraining(const Study& study, const Settings& settings, const Trial& trial);

}  // namespace numsim::experiments::study
