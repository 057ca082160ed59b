// The probes and the columns that studies share.
#include "experiments/study/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "experiments/runner/training_run.h"
#include "experiments/shared/block_name.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"
#include "numsim/ops/elementwise.h"
#include "numsim/train/stress.h"

namespace numsim::experiments::study {
namespace {

// ---- the table of trainings

class EndProbe final : public Probe {
 public:
  EndProbe(std::string table, std::vector<EndColumn> columns)
      : table_(std::move(table)), columns_(std::move(columns)) {}

  void End(Measurement& training) override {
    Row row;
    for (const EndColumn& column : columns_) row.push_back(column.cell(training));
    training.rows.Add(table_, row);
  }

 private:
  std::string table_;
  std::vector<EndColumn> columns_;
};

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

// ---- curves

class CurveProbe final : public Probe {
 public:
  explicit CurveProbe(uint64_t every) : curve_(every) {}

  void Begin(Measurement& training) override {
    training.rows.Add("curves", {0, training.start_loss});
  }
  void After(Measurement& training) override {
    if (curve_.Add(training.trainer)) training.rows.Add("curves", {curve_.steps(), curve_.loss()});
  }
  void Keep(StateArchive& archive) override { archive(curve_); }

 private:
  LossCurve curve_;
};

// ---- validations at doublings

class ValidationProbe final : public Probe {
 public:
  explicit ValidationProbe(int64_t validations) : validations_(validations) {}

  void Begin(Measurement& training) override { Add(training, training.start_loss); }
  void After(Measurement& training) override {
    const uint64_t steps = training.trainer.steps_taken();
    const bool taken = std::exchange(steps_, steps) != steps;  // not with an infinite gradient
    if (!taken || !IsDoubling(steps, training.trainer.config().train.steps, validations_)) return;
    Add(training, training.Loss());
    if (!std::isfinite(early_loss_)) early_loss_ = training.Loss();
  }
  void End(Measurement& training) override { training.early_loss = early_loss_; }
  void Keep(StateArchive& archive) override { archive(steps_, early_loss_); }

 private:
  static void Add(Measurement& training, double loss) {
    const uint64_t steps = training.trainer.steps_taken();
    training.rows.Add("validations", {steps, steps * training.trainer.tokens_per_step(), loss});
  }

  int64_t validations_;
  uint64_t steps_ = 0;
  double early_loss_ = kInfinity;
};

// ---- the residual stream

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

// Measures the output of every block, under the perturbations of the training.
class BlockObserver final : public PassObserver<float> {
 public:
  explicit BlockObserver(Measurement& training) : training_(training), loss_(training.Loss()) {}

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    if (role != TensorRole::kActivation) return;
    const StressConfig& stress = Config().stress;
    PlantActivation(stress, point, values);
    const std::optional<BlockName> name = ParseBlockName(point);
    if (!name || !name->rest.empty()) return;  // not the output of a block
    const AbsoluteStatistics measured = MeasureAbsolute(values);
    const double rest = stress.point.empty() ? measured.mean : MeanWithout(stress.channel, values);
    training_.rows.Add("features",
                       {training_.trainer.steps_taken(),
                        loss_,
                        TowerName(name->tower),
                        name->block,
                        measured.mean,
                        rest,
                        measured.max});
  }

 private:
  const TrainConfig& Config() const { return training_.trainer.config(); }
  // Returns the name of a tower. Models with a single tower have no prefix for it.
  std::string TowerName(std::string_view prefix) const {
    if (prefix.empty()) return Config().model.kind == ModelKind::kVit ? "image" : "text";
    return std::string(prefix.substr(0, prefix.size() - 1));
  }

  Measurement& training_;
  double loss_;
};

class ResidualProbe final : public Probe {
 public:
  void Moment(Measurement& training) override {
    Trainer& trainer = training.trainer;
    const TrainConfig& config = trainer.config();
    Batch batch;
    trainer.data().ValidBatch(0, config.train.batch, config.model.context, batch);
    StretchInputs(config.stress.input_tail, batch);
    BlockObserver observer(training);
    Pass<float> pass;
    pass.seed = config.train.seed;
    pass.step = trainer.steps_taken();
    pass.observer = &observer;
    trainer.model().Forward(pass, batch);
  }
};

// ---- quantised operands

class QuantizedProbe final : public Probe {
 public:
  void After(Measurement& training) override {
    if (training.trainer.config().linear.all.kind != "standard") Add(training);
    ++step_;
  }
  void Keep(StateArchive& archive) override { archive(step_); }

 private:
  // Sums over layers for one operand.
  struct Sums {
    double layers = 0, underflow = 0, worst = 0;
    double decibels = 0, measured = 0;
  };

  void Add(Measurement& training) const {
    // One class per tensor: with tensor-wise scales, X, W and G are quantised once for both GEMMs.
    constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
        {"forward X", "X"}, {"forward W", "W"}, {"input gradient G", "G"}};
    const Table& table = training.trainer.telemetry().Of("quantised");
    std::map<std::string, Sums, std::less<>> sums;
    for (size_t r = 0; r < table.rows.size(); ++r) {
      Sums& of = sums[table.Text(r, "operand")];
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
      const auto found = sums.find(operand);
      if (found == sums.end()) continue;
      const Sums& of = found->second;
      training.rows.Add(
          "quantised",
          {step_, name, of.underflow / of.layers, of.worst, of.decibels / of.measured});
    }
  }

  uint64_t step_ = 0;  // taken before this one
};

template <typename T>
std::function<std::unique_ptr<Probe>(const Measurement&)> Maker() {
  return [](const Measurement&) { return std::make_unique<T>(); };
}

}  // namespace

EndColumn StatusColumn() {
  return {{"status", "finished or diverged"},
          [](Measurement& training) { return Cell(ToString(training.trainer.status())); }};
}
EndColumn StepsColumn() {
  return {{"steps", "steps taken"},
          [](Measurement& training) { return Cell(training.trainer.steps_taken()); }};
}
EndColumn ParametersColumn() {
  return {{"parameters", "parameters of the model"}, [](Measurement& training) {
            return Cell(training.trainer.model().parameters().Elements());
          }};
}
EndColumn StartLossColumn() {
  return {{"start_loss", "validation loss before training"},
          [](Measurement& training) { return Cell(training.start_loss); }};
}
EndColumn TrainLossColumn() {
  return {{"train_loss", "mean training loss of the last 10 steps"},
          [](Measurement& training) { return Cell(training.trainer.recent_loss()); }};
}
EndColumn EarlyLossColumn() {
  return {{"early_loss", "validation loss at the first of --validations; inf when diverged before"},
          [](Measurement& training) { return Cell(training.early_loss); }};
}
EndColumn ValidLossColumn() {
  return {{"valid_loss", "validation loss at the end; inf when diverged"},
          [](Measurement& training) { return Cell(training.FinalLoss()); }};
}
EndColumn ZeroShotColumn() {
  return {
      {"zero_shot",
       "share of validation images whose nearest caption is of their concept; nan if diverged or "
       "not a CLIP"},
      [](Measurement& training) {
        const bool judged =
            std::isfinite(training.FinalLoss()) && training.trainer.last_zero_shot().has_value();
        return Cell(judged ? training.trainer.last_zero_shot()->Accuracy() : kNaN);
      }};
}
EndColumn ChanceLossColumn() {
  return {
      {"chance_loss",
       "loss of a model that guesses at random, nats: log of the number of captions in a batch, "
       "of classes, or of byte values"},
      [](Measurement& training) { return Cell(ChanceLoss(training.trainer.config())); }};
}

ProbeSpec EndOfTraining(std::string table, std::vector<EndColumn> columns) {
  MeasuredTable measured{.name = table, .columns = {}};
  for (const EndColumn& column : columns) measured.columns.push_back(column.column);
  return {.tables = {measured},
          .make = [table = std::move(table), columns = std::move(columns)](const Measurement&) {
            return std::make_unique<EndProbe>(table, columns);
          }};
}

ProbeSpec Curves(const std::string& unit) {
  const auto make = [](const Measurement& training) {
    const auto records = static_cast<uint64_t>(
        training.settings.GetInteger("records", 1, std::numeric_limits<int>::max()));
    return std::make_unique<CurveProbe>(
        std::max<uint64_t>(1, training.trainer.config().train.steps / records));
  };
  return {.tables = {{"curves",
                      {{"step", "steps taken"},
                       {"loss",
                        "mean training loss since the last record, " + unit +
                            "; at step 0 the validation loss"}}}},
          .make = make};
}

ProbeSpec Validations(const std::string& unit) {
  return {.tables = {{"validations",
                      {{"step", "steps taken"},
                       {"tokens", "tokens or examples seen"},
                       {"valid_loss", "validation loss, " + unit}}}},
          .make = [](const Measurement& training) {
            return std::make_unique<ValidationProbe>(
                training.settings.GetInteger("validations", 1, kMostValidations));
          }};
}

ProbeSpec ResidualStream() {
  return {.tables = {{"features",
                      {{"step", "steps taken"},
                       {"valid_loss", "validation loss after these steps"},
                       {"tower", "image or text"},
                       {"block", "number of the block, from 0"},
                       {"mean_abs", "E|x_k| of the residual stream after the block"},
                       {"mean_abs_rest", "mean_abs without the planted channel"},
                       {"max_abs", "largest magnitude"}}}},
          .make = Maker<ResidualProbe>()};
}

ProbeSpec QuantizedOperands() {
  return {.tables = {{"quantised",
                      {{"step", "steps taken before this one"},
                       {"operand", "X, W or G"},
                       {"underflow",
                        "share of elements that were not zero and became zero, mean over layers"},
                       {"underflow_worst", "underflow of the layer where it is largest"},
                       {"sqnr_db", "signal to quantisation noise ratio in dB, mean over layers"}}}},
          .make = Maker<QuantizedProbe>()};
}

}  // namespace numsim::experiments::study
