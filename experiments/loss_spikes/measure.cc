// Measures a training of `loss-spikes`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/shared/special_values.h"
#include "numsim/analysis/curvature.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::loss_spikes {
namespace {

using study::EndColumn;
using study::Measurement;

// A training has collapsed if it ends above this share of the loss of a guess.
constexpr double kCollapsedAbove = 0.95;
constexpr double kUnstableAbove = 2;   // StepCurvature::Times
constexpr uint64_t kAfterChange = 50;  // steps

// Returns the entropy of the frequencies of the targets in the validation batches.
double TargetEntropy(const Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  const size_t all = trainer.data().ValidBatches(config.train.batch, config.model.context);
  std::map<int32_t, double> counts;
  double total = 0;
  Batch batch;
  for (size_t i = 0; i < std::min(all, config.train.valid_batches); ++i) {
    trainer.data().ValidBatch(i, config.train.batch, config.model.context, batch);
    for (const int32_t target : batch.targets) {
      counts[target] += 1;
      total += 1;
    }
  }
  double entropy = 0;
  for (const auto& [target, count] : counts) entropy -= count / total * Log(count / total);
  return entropy;
}

// Returns the loss of a guess that knows only how frequent the answers are; NaN for a student.
double ChanceLoss(const Trainer& trainer) {
  if (trainer.config().model.kind == ModelKind::kMlp) return kNaN;
  if (trainer.config().model.kind == ModelKind::kClip) {
    return Log(static_cast<double>(trainer.config().train.batch));
  }
  return TargetEntropy(trainer);
}

// Returns the upper bound of RMS_t for a constant beta2; 0 for optimisers that it does not hold
// for.
double RmsBound(const OptimizerConfig& config) {
  const bool adam =
      config.kind == OptimizerKind::kAdamW || config.kind == OptimizerKind::kStableAdamW;
  const StableOptions& stable = config.stable;
  if (!adam || stable.previous_u || stable.of_update || stable.of_moment) return 0;
  return config.beta2_decay > 0 ? 0 : 1 / std::sqrt(1 - config.beta2);
}

double LargestFrom(const std::vector<double>& values, uint64_t first, uint64_t last) {
  double largest = 0;
  for (uint64_t t = first; t < std::min<uint64_t>(last, values.size()); ++t) {
    largest = std::max(largest, values[t]);
  }
  return largest;
}

double MeanFrom(const std::vector<double>& values, uint64_t first, uint64_t last) {
  double sum = 0;
  for (uint64_t t = first; t < last; ++t) sum += values.at(t);
  return sum / static_cast<double>(last - first);
}

std::string Joined(const std::vector<uint64_t>& steps) {
  return fmt::format("{}", fmt::join(steps, " "));
}

bool IsTraced(const Measurement& training) {
  const Arm& arm = training.arm;
  if (training.seed != training.settings.seed) return false;
  if (arm[kOptimizer] != kAdamW && arm[kOptimizer] != kStable) return false;
  return With(arm, kOptimizer, kAdamW) == Centre(training.settings, arm[kBeta2]);
}

double AccuracyOf(Measurement& training) {
  if (!training.Finished()) return 0;
  const LossSum& valid = training.Validation();
  const auto& zero_shot = training.trainer.last_zero_shot();
  if (zero_shot.has_value()) return zero_shot->Accuracy();
  return static_cast<double>(valid.correct) / static_cast<double>(valid.counted);
}

// The columns of the table of trainings that say how one ended.
std::vector<EndColumn> EndColumns() {
  return {
      study::ParametersColumn(),
      study::StatusColumn(),
      study::StepsColumn(),
      study::StartLossColumn(),
      {{"chance_loss", "loss of a guess by the frequencies of the answers"},
       [](Measurement& training) { return Cell(ChanceLoss(training.trainer)); }},
      study::TrainLossColumn(),
      study::ValidLossColumn(),
      {{"accuracy",
        "clip: zero-shot accuracy on held-out captions; others: accuracy of the validation; 0 to 1"},
       [](Measurement& training) { return Cell(AccuracyOf(training)); }},
      {{"collapsed", "1 if valid_loss is above 95 % of chance_loss"}, [](Measurement& training) {
         const double chance = ChanceLoss(training.trainer);
         const bool above = training.FinalLoss() > kCollapsedAbove * chance;
         return Cell(!training.Finished() || above ? 1 : 0);
       }}};
}

// Records a training step by step; its events are known at the end.
class SpikeProbe final : public study::Probe {
 public:
  explicit SpikeProbe(const Measurement& training)
      : rule_(RuleOf(training.settings, training.arm)),
        bound_(RmsBound(training.trainer.config().optimizer)),
        curvature_(training.settings.GetYes("curvature") && training.arm[kModel] == kStudent &&
                   training.arm[kOptimizer] == kAdamW &&
                   !training.arm[kBeta2].starts_with(kSchedule)) {
    for (const Parameter<float>& parameter : training.trainer.model().parameters()) {
      names_.push_back(parameter.name);
    }
    const auto input = std::ranges::find(names_, InputParameter(training.arm[kModel]));
    NUMSIM_CHECK(input != names_.end(), "{}", training.arm[kModel]);
    input_ = static_cast<size_t>(input - names_.begin());
    rms_.resize(names_.size());
  }

  void Before(Measurement& training) override {
    step_ = training.trainer.steps_taken();
    const bool measured = curvature_ && step_ >= rule_.ignored;
    times_ = measured ? CurvatureOfNextStep(training.trainer).Times() : kNaN;
  }

  void After(Measurement& training) override {
    const Trainer& trainer = training.trainer;
    if (trainer.steps_taken() == step_) return;  // its loss was not finite: there was no update
    if (curvature_) times_of_.push_back(times_);
    losses_.push_back(trainer.last_loss());
    const OptimizerStep& update = trainer.last_update();
    for (size_t i = 0; i < rms_.size(); ++i) {
      const double rms = update.tensors[i].rms;
      rms_[i].push_back(rms);
      if (bound_ > 0) bound_ratio_ = std::max(bound_ratio_, rms / bound_);
    }
    update_rms_.push_back(update.tensors[input_].update_rms);
  }

  void End(Measurement& training) override {
    AddEvents(training.rows);
    Row run;
    for (const EndColumn& column : EndColumns()) run.push_back(column.cell(training));
    const std::vector<uint64_t> spikes = LossSpikes(losses_, rule_);
    run.insert(run.end(),
               {spikes.size(),
                StepsLost(losses_, spikes, rule_),
                RmsSpikes(rms_[input_], rule_).size(),
                LargestFrom(rms_[input_], rule_.ignored, losses_.size()),
                bound_ratio_});
    AddChange(ChangeStep(training.settings), run);
    training.rows.Add("runs", run);
    if (!IsTraced(training)) return;
    const std::vector<double> deviations = LossDeviations(losses_, rule_.window);
    for (size_t t = 0; t < losses_.size(); ++t) {
      training.rows.Add("trace", {t, losses_[t], deviations[t], rms_[input_][t]});
    }
  }

  void Keep(StateArchive& archive) override {
    archive(losses_, update_rms_, rms_, times_of_, bound_ratio_);
  }

 private:
  void AddEvents(TrainingRows& rows) const {
    const std::vector<uint64_t> spikes = LossSpikes(losses_, rule_);
    if (!spikes.empty()) {
      const std::string lost = Joined(RecoverySteps(losses_, spikes, rule_));
      rows.Add("events", {"loss", "", spikes.size(), Joined(spikes), lost});
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const std::vector<uint64_t> events = RmsSpikes(rms_[i], rule_);
      if (events.empty()) continue;
      rows.Add("events", {"rms", names_[i], events.size(), Joined(events), ""});
    }
    if (!curvature_ || times_of_.empty()) return;
    SpikeRule above = rule_;
    above.rms = kUnstableAbove;
    const std::vector<uint64_t> events = RmsSpikes(times_of_, above);
    rows.Add("events", {"curvature", "", events.size(), Joined(events), ""});
  }

  // Adds the effect of a change on the input parameter: RMS_t, and the size of steps.
  void AddChange(uint64_t change, Row& row) const {
    const std::vector<double>& rms = rms_[input_];
    if (change < kBeforeChange || change >= rms.size()) {
      row.insert(row.end(), {kNaN, kNaN, kNaN});
      return;
    }
    row.emplace_back(rms[change]);
    row.emplace_back(LargestFrom(rms, change, change + kAfterChange));
    row.emplace_back(LargestFrom(update_rms_, change, change + kAfterChange) /
                     MeanFrom(update_rms_, change - kBeforeChange, change));
  }

  SpikeRule rule_;
  double bound_;
  bool curvature_;
  std::vector<std::string> names_;  // of the parameters
  size_t input_ = 0;                // the one that reads the input
  uint64_t step_ = 0;               // that is being taken
  double times_ = 0;                // StepCurvature::Times of that step
  std::vector<double> losses_, update_rms_, times_of_;
  std::vector<std::vector<double>> rms_;  // by parameter
  double bound_ratio_ = 0;                // largest RMS_t over its bound 1 / sqrt(1 - beta2)
};

std::vector<Column> RunColumns() {
  std::vector<Column> columns;
  for (const EndColumn& column : EndColumns()) columns.push_back(column.column);
  return Joined(std::move(columns),
                {{"loss_spikes", "number of loss spikes after the warm-up"},
                 {"steps_lost", "steps until the loss was back, over all loss spikes"},
                 {"rms_spikes", "number of RMS spikes of the embedding that reads the input"},
                 {"max_rms", "largest RMS_t of that embedding after the warm-up"},
                 {"bound_ratio",
                  "largest RMS_t of any tensor over 1 / sqrt(1 - beta2); 0: the bound is for a "
                  "constant beta2 and RMS_t of this step's g and u"},
                 {"change_rms", "RMS_t of that embedding at --change-step"},
                 {"change_max_rms", "its largest RMS_t in the 50 steps from then on"},
                 {"change_update",
                  "largest root mean square of its direction in these 50 steps, over the mean of "
                  "the 50 before"}});
}

}  // namespace

std::string InputParameter(const std::string& model) {
  if (model == "clip") return "image.patches.weight";
  if (model == kStudent) return "input.weight";
  return model == "vit" ? "patches.weight" : "embedding.tokens";
}

study::ProbeSpec Spikes() {
  return {
      .tables = {{"runs", RunColumns()},
                 {"events",
                  {{"event", "loss, rms or curvature"},
                   {"tensor", "of RMS spikes: the parameter"},
                   {"count", "number of events"},
                   {"at", "steps at which they begin, separated by blanks"},
                   {"lost", "of loss spikes: steps until the loss was back"}}},
                 {"trace",
                  {{"step",
                    "steps taken before this one; first seed, AdamW and StableAdamW at the centre"},
                   {"loss", "loss of the batch"},
                   {"deviation", "standard deviations above the running mean; nan: too few losses"},
                   {"rms", "RMS_t of the embedding that reads the input"}}}},
      .make = [](const Measurement& training) { return std::make_unique<SpikeProbe>(training); }};
}

}  // namespace numsim::experiments::loss_spikes
