// Measures one trial of `fp8-interventions`: a training.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/block_name.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
#include "numsim/base/elementary.h"
#include "numsim/ops/elementwise.h"
#include "numsim/train/stress.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::fp8_interventions {
namespace {

// Returns the mean of |x| without one channel, or of all channels if x does not have it.
double MeanWithout(size_t channel, MatrixSpan<float> x) {
  if (channel >= x.cols) return MeasureAbsolute(x).mean;
  double sum = 0, count = 0;
  const auto add = [&](MatrixSpan<float> part) {
    if (part.Elements() == 0) return;
    const AbsoluteStatistics measured = MeasureAbsolute(part);
    const double finite = static_cast<double>(part.Elements() - measured.nonfinite);
    if (finite == 0) return;
    sum += measured.mean * finite;
    count += finite;
  };
  add(x.Columns(0, channel));
  add(x.Columns(channel + 1, x.cols - channel - 1));
  return sum / count;
}

// Measures the residual stream after every block, under the perturbations of the training.
class FeatureObserver : public PassObserver<float> {
 public:
  // `moment` holds the cells that each row starts with.
  FeatureObserver(const TrainConfig& config, Row moment, TrainingRows& rows)
      : config_(config), moment_(std::move(moment)), rows_(rows) {}

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    if (role != TensorRole::kActivation) return;
    PlantActivation(config_.stress, point, values);
    const std::optional<BlockName> name = ParseBlockName(point);
    if (!name || !name->rest.empty()) return;  // not the output of a block
    const AbsoluteStatistics measured = MeasureAbsolute(values);
    const bool planted = !config_.stress.point.empty();
    const double rest = planted ? MeanWithout(config_.stress.channel, values) : measured.mean;
    Row row = moment_;
    row.insert(row.end(), {TowerName(name->tower), name->block, measured.mean, rest, measured.max});
    rows_.Add(kFeaturesTable, row);
  }

 private:
  // Returns the name of a tower. Models with a single tower have no prefix for it.
  std::string TowerName(std::string_view prefix) const {
    if (prefix.empty()) return config_.model.kind == ModelKind::kVit ? "image" : "text";
    return std::string(prefix.substr(0, prefix.size() - 1));
  }

  const TrainConfig& config_;
  Row moment_;
  TrainingRows& rows_;
};

// Measures the features on the first batch of validation. Returns the validation loss.
double MeasureFeatures(Trainer& trainer, TrainingRows& rows) {
  const double loss = trainer.Validate().Mean();
  const TrainConfig& config = trainer.config();
  Batch batch;
  trainer.data().ValidBatch(0, config.train.batch, config.model.context, batch);
  StretchInputs(config.stress.input_tail, batch);
  FeatureObserver observer(config, {trainer.steps_taken(), loss}, rows);
  Pass<float> pass;
  pass.seed = config.train.seed;
  pass.step = trainer.steps_taken();
  pass.observer = &observer;
  trainer.model().Forward(pass, batch);
  return loss;
}

// Sums over layers for one class of operands.
struct OperandSums {
  double layers = 0, underflow = 0, worst = 0;
  double decibels = 0, measured = 0;
};

// Adds rows from the telemetry of a step, averaged over layers, and clears the telemetry.
void TakeQuantized(Trainer& trainer, uint64_t step, TrainingRows& rows) {
  // One class per tensor: with tensor-wise scales, X, W and G are quantised once for both GEMMs.
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"forward X", "X"}, {"forward W", "W"}, {"input gradient G", "G"}};
  const Table& table = trainer.telemetry().Of("quantised");
  std::map<std::string, OperandSums> sums;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    OperandSums& of = sums[table.Text(r, "operand")];
    const double underflow = table.Number(r, "underflow");
    const double decibels = table.Number(r, "sqnr_db");
    of.layers += 1;
    of.underflow += underflow;
    of.worst = std::max(of.worst, underflow);
    if (!std::isfinite(decibels)) continue;
    of.decibels += decibels;
    of.measured += 1;
  }
  for (const auto& [operand, name] : kClasses) {
    const auto found = sums.find(std::string(operand));
    if (found == sums.end()) continue;
    const OperandSums& of = found->second;
    rows.Add(kQuantizedTable,
             {step, name, of.underflow / of.layers, of.worst, of.decibels / of.measured});
  }
  trainer.telemetry().Clear();
}

// Returns the loss of a model that gives every choice the same probability.
double ChanceLoss(const TrainConfig& config) {
  switch (config.model.kind) {
    case ModelKind::kClip:
      return Log(static_cast<double>(config.train.batch));
    case ModelKind::kVit:
      return Log(static_cast<double>(config.model.classes));
    default:
      return Log(static_cast<double>(config.model.vocabulary));
  }
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const Intervention intervention = ParseIntervention(trial.parameters.at("intervention"));
  const Precision precision = ParsePrecision(trial.parameters.at("format"));
  const TrainConfig config = ConfigOf(settings, intervention, precision, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  TrainingRows rows({intervention.Text(), precision.Text(), trial.seed});
  const double start = MeasureFeatures(trainer, rows);
  rows.Add(kCurvesTable, {0, start});

  const auto records =
      static_cast<uint64_t>(settings.GetInteger("records", 2, std::numeric_limits<int>::max()));
  LossCurve curve(std::max<uint64_t>(1, config.train.steps / records));
  uint64_t step = 0;
  TrainingSteps loop(trial, trainer, [&](StateArchive& archive) { archive(rows, curve, step); });
  for (; loop.Next(); ++step) {
    trainer.Step();
    if (precision != kBaseline) TakeQuantized(trainer, step, rows);
    trainer.telemetry().Clear();
    if (curve.Add(trainer)) rows.Add(kCurvesTable, {curve.steps(), curve.loss()});
    const bool running = trainer.status() == TrainStatus::kRunning;
    const bool due = trainer.steps_taken() % config.telemetry.tensors_every == 0;
    if (running && due) MeasureFeatures(trainer, rows);
  }
  const double at_end = MeasureFeatures(trainer, rows);
  const double loss = trainer.status() == TrainStatus::kFinished ? at_end : kInfinity;
  const bool judged = std::isfinite(loss) && trainer.last_zero_shot().has_value();
  rows.Add(kFinalTable,
           {ToString(trainer.status()),
            trainer.steps_taken(),
            ChanceLoss(trainer.config()),
            start,
            trainer.recent_loss(),
            loss,
            judged ? trainer.last_zero_shot()->Accuracy() : std::nan("")});
  return rows.Take();
}

}  // namespace numsim::experiments::fp8_interventions
