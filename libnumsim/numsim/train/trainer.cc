#include "numsim/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/base/require.h"
#include "numsim/random/streams.h"
#include "numsim/train/internal/trainer_parts.h"
#include "numsim/train/stress.h"

namespace numsim {
namespace {

constexpr Keyword<TrainStatus> kStatuses[] = {
    {"running", TrainStatus::kRunning},
    {"finished", TrainStatus::kFinished},
    {"diverged", TrainStatus::kDiverged},
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool IsDue(uint64_t step, uint64_t every) { return every > 0 && step % every == 0; }

double Ratio(double part, double whole) { return whole == 0 ? 0.0 : part / whole; }

double FlushedShare(const MomentLoss& loss) {
  return Ratio(static_cast<double>(loss.flushed), static_cast<double>(loss.nonzero));
}

double RelativeError(const MomentLoss& loss) {
  return std::sqrt(Ratio(loss.error_square, loss.signal_square));
}

}  // namespace

TrainStatus ParseTrainStatus(std::string_view text) {
  return ParseKeyword(kStatuses, "status", text);
}
std::string_view ToString(TrainStatus status) { return KeywordToString(kStatuses, status); }

Trainer::Parts::Parts(const TrainConfig& given, std::shared_ptr<const DataSource> source)
    : config(given), data(std::move(source)), observer(given.storage, given.stress) {
  FitToData(config, data->shape());
  data->CheckBatch(PartSize(), config.model.context);
  model = MakeModel<float>(config.model, config.linear, config.train.seed);
  optimizer = std::make_unique<Optimizer>(
      config.optimizer, config.loss_scaler, model->parameters(), config.train.seed);
  what_if.emplace(config.what_if, config.train.seed, *model, observer);
  burst = BurstParameter(config.stress, model->parameters());
  if (config.stress.point.empty()) return;
  data->ValidBatch(0, 1, config.model.context, batch);
  CheckStressPoint(config.stress, *model, batch);
}

void Trainer::Parts::Diverge(std::string why) {
  status = TrainStatus::kDiverged;
  reason = std::move(why);
}

bool Trainer::Parts::IsLanguageModel() const {
  return config.model.kind == ModelKind::kLlama || config.model.kind == ModelKind::kGpt;
}

uint64_t Trainer::Parts::TokensPerStep() const {
  return config.train.batch * (IsLanguageModel() ? config.model.context : 1);
}

size_t Trainer::Parts::PartSize() const { return config.train.batch / config.train.accumulate; }

LossSum Trainer::Parts::Validate() {
  const size_t all = data->ValidBatches(PartSize(), config.model.context);
  const size_t limit = config.train.valid_batches;
  const size_t count = limit == 0 ? all : std::min(limit, all);
  observer.Begin(step, nullptr, nullptr);
  Pass<float> pass;
  pass.seed = config.train.seed;
  pass.step = step;
  pass.observer = observer.ChangesTensors() ? &observer : nullptr;
  // A forward pass updates delayed scales; they are restored below.
  const std::vector<NamedState> scaling = model->SaveState();
  LossSum total;
  retrieval.Clear();
  for (size_t i = 0; i < count; ++i) {
    data->ValidBatch(i, PartSize(), config.model.context, batch);
    StretchInputs(config.stress.input_tail, batch);
    const LossSum one = model->Forward(pass, batch);
    total.sum += one.sum;
    total.counted += one.counted;
    total.correct += one.correct;
    if (const auto embeddings = model->LastEmbeddings()) {
      retrieval.Add(*embeddings, batch.concepts);
    }
  }
  model->RestoreState(scaling);
  zero_shot.reset();
  if (model->LastEmbeddings().has_value()) zero_shot = retrieval.Judge();
  return total;
}

void Trainer::Parts::RecordValidation() {
  if (validation.has_value() && validated_at == step) return;
  validation = Validate();
  validation_zero_shot = zero_shot;
  validated_at = step;
  const bool counts = config.model.kind != ModelKind::kMlp && validation->counted > 0;
  const double accuracy =
      counts ? static_cast<double>(validation->correct) / static_cast<double>(validation->counted)
             : kNan;
  telemetry.Add(
      "valid",
      {step, validation->Mean(), accuracy, zero_shot.has_value() ? zero_shot->Accuracy() : kNan});
}

const OptimizerStep& Trainer::Parts::Update(double learning_rate, bool measures) {
  const uint64_t index = step;
  const TimedPart timed(&profile, StepPhase::kOptimiser);
  const OptimizerStep& result = optimizer->Step(learning_rate, index, measures);
  if (!result.finite && config.loss_scaler.kind == LossScaling::kNone) {
    Diverge(fmt::format("step {}: gradients are not finite", index));
    return result;
  }
  ++step;
  if (losses.Diverged(config.train.diverged_above)) {
    Diverge(fmt::format("step {}: the mean loss of {} steps, {:.4g}, is above {} times the first",
                        index,
                        LossHistory::kRecent,
                        losses.Recent(),
                        config.train.diverged_above));
  } else if (step >= config.train.steps) {
    status = TrainStatus::kFinished;
  }
  return result;
}

void Trainer::Parts::MakeBatch(size_t part, Batch& result) const {
  data->TrainBatch(DeriveSeed(config.train.seed, RandomPurpose::kShuffle),
                   step * config.train.accumulate + part,
                   PartSize(),
                   config.model.context,
                   result);
  StretchInputs(config.stress.input_tail, result);
  ScaleInputs(config.stress.ContrastFactor(step), result);
}

PassObserver<float>* Trainer::Parts::Observe(size_t part, bool measures) {
  const size_t parts = config.train.accumulate;
  const bool is_last = part + 1 == parts;
  measures = measures && is_last;
  const bool measures_what_if = is_last && IsDue(step, config.what_if.every);
  observer.Begin(step, measures ? &telemetry : nullptr, &profile, guest);
  what_if->Begin(step, step * parts + part, measures_what_if ? &telemetry : nullptr, &profile);
  if (what_if->IsNeeded(measures_what_if)) return &*what_if;
  const bool watched = measures || guest != nullptr || observer.ChangesTensors();
  return watched ? &observer : nullptr;
}

bool Trainer::Parts::PassOfPart(size_t part, bool measures, LossSum& loss) {
  {
    const TimedPart timed(&profile, StepPhase::kData);
    MakeBatch(part, batch);
  }
  const size_t parts = config.train.accumulate;
  Pass<float> pass;
  pass.seed = config.train.seed;
  pass.step = step * parts + part;
  pass.loss_scale =
      config.stress.LossFactor(step) * optimizer->LossScale() / static_cast<double>(parts);
  pass.training = true;
  pass.observer = Observe(part, measures);
