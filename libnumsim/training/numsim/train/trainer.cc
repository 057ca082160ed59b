#include "numsim/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "numsim/backend/backend.h"
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

double Ratio(double part, double whole) { return whole == 0 ? 0.0 : part / whole; }

double FlushedShare(const MomentLoss& loss) {
  return Ratio(static_cast<double>(loss.flushed), static_cast<double>(loss.nonzero));
}

double RelativeError(const MomentLoss& loss) {
  return std::sqrt(Ratio(loss.error_square, loss.signal_square));
}

// Rows and columns of parameters by name.
using Shapes = std::map<std::string, std::pair<size_t, size_t>>;

Shapes ShapesOf(const ParameterList<float>& parameters) {
  Shapes shapes;
  for (const Parameter<float>& parameter : parameters) {
    const In<float> value = parameter.value.View();
    shapes[parameter.name] = {value.rows, value.cols};
  }
  return shapes;
}

// Throws KeyError unless the model after a fork has the parameters of the baseline's.
void RequireShapes(const Shapes& before, const Shapes& after) {
  for (const auto* const all : {&before, &after}) {
    for (const auto& [name, shape] : *all) {
      const auto was = before.find(name), is = after.find(name);
      if (was != before.end() && is != after.end() && was->second == is->second) continue;
      throw KeyError::Format(
          "fork.before",
          "the models before and after the fork differ in parameter '{}'; a fork "
          "keeps names and shapes of all parameters",
          name);
    }
  }
}

}  // namespace

TrainStatus ParseTrainStatus(std::string_view text) {
  return ParseKeyword(kStatuses, "status", text);
}
std::string_view ToString(TrainStatus status) { return KeywordToString(kStatuses, status); }

Trainer::Parts::Parts(const TrainConfig& given, std::shared_ptr<const DataSource> source)
    : whole(given), data(std::move(source)), observer(given.storage, given.stress) {
  FitToData(whole, data->shape());
  config = whole;
  data->CheckBatch(PartSize(), config.model.context);
  Begin(whole);
  if (whole.fork.steps == 0) return;
  // The model after the fork has been made, which checks it.
  const Shapes after = ShapesOf(model->parameters());
  BeginAt(/*side=*/false);
  RequireShapes(ShapesOf(model->parameters()), after);
}

size_t Trainer::Parts::PartSize() const { return config.train.batch / config.train.accumulate; }

LossSum Trainer::Parts::Validate() {
  const size_t all = data->ValidBatches(PartSize(), config.model.context);
  const size_t limit = config.train.valid_batches;
  const size_t count = limit == 0 ? all : std::min(limit, all);
  observer.Begin(course.step, nullptr, nullptr);
  Pass<float> pass;
  pass.seed = config.train.seed;
  pass.step = course.step;
  pass.gradients = false;
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
  if (!course.ValidationIsDue(config.train)) return;
  const LossSum loss = Validate();
  course.RecordValidation(config, loss, zero_shot, telemetry);
}

const OptimizerStep& Trainer::Parts::Update(bool measures) {
  const TimedPart timed(&profile, StepPhase::kOptimiser);
  const OptimizerStep& result =
      optimizer->Step(config.schedule.At(course.step), course.step, measures);
  course.EndStep(config.train, result.finite || config.loss_scaler.kind != LossScaling::kNone);
  return result;
}

void Trainer::Parts::MakeBatch(size_t part, Batch& result) const {
  data->TrainBatch(DeriveSeed(config.train.seed, RandomPurpose::kShuffle),
                   config.stress.BatchOf(course.step, course.step * config.train.accumulate + part),
                   PartSize(),
                   config.model.context,
                   result);
  StretchInputs(config.stress.input_tail, result);
  ScaleInputs(config.stress.ContrastFactor(course.step), result);
}

PassObserver<float>* Trainer::Parts::Observe(size_t part, bool measures) {
  const size_t parts = config.train.accumulate;
  const bool is_last = part + 1 == parts;
  measures = measures && is_last;
  const bool measures_what_if = is_last && IsDue(course.step, config.what_if.every);
  observer.Begin(course.step, measures ? &telemetry : nullptr, &profile, guest);
  what_if->Begin(course.step,
                 course.step * parts + part,
                 measures_what_if ? &telemetry : nullptr,
                 &profile,
                 is_last);
  if (what_if->IsNeeded(measures_what_if)) return &*what_if;
  const bool watched = measures || guest != nullptr || observer.ChangesTensors();
  return watched ? &observer : nullptr;
}

PassObserver<float>* Trainer::Parts::ObserveUnused() {
  observer.Begin(course.step, nullptr, &profile);
  return observer.ChangesTensors() ? &observer : nullptr;
}

void Trainer::Parts::PassOfPart(size_t part, bool measures, LossSum& loss) {
  {
    const TimedPart timed(&profile, StepPhase::kData);
    MakeBatch(part, batch);
  }
  const size_t parts = config.train.accumulate;
  Pass<float> pass;
  pass.seed = config.train.seed;
  pass.step = course.step * parts + part;
  pass.loss_scale =
      config.stress.LossFactor(course.step) * optimizer->LossScale() / static_cast<double>(parts);
  pass.training = true;
  pass.updates_scales = part + 1 == parts;
  pass.observer = Observe(part, measures);
  pass.profile = &profile;
  const LossSum of_part = model->Forward(pass, batch);
  loss.sum += of_part.sum;
  loss.counted += of_part.counted;
  // The passes of a step do not depend on its loss, so that a device need not wait for it.
  if (!std::isfinite(loss.Mean())) pass.observer = ObserveUnused();
  model->Backward(pass);
  if (parts > 1) gradients.Add(part, parts, model->parameters());
}

void Trainer::Parts::TakeStep() {
  const uint64_t index = course.step;
  const bool measures = IsDue(index, config.telemetry.tensors_every);
  if (config.stress.NudgesAt(index)) {
    NudgeWeight(config.stress, config.train.seed, model->parameters());
  }
  LossSum loss;
  for (size_t part = 0; part < config.train.accumulate; ++part) PassOfPart(part, measures, loss);
  course.losses.Add(loss.Mean());
  StepNumbers numbers;
  if (std::isfinite(loss.Mean())) {
    if (config.stress.InBurst(index)) {
      burst->gradient.View().Span()[0] = std::numeric_limits<float>::infinity();
    }
    if (measures) RecordParameters(index);
    const OptimizerStep& result = Update(measures);
    if (measures) RecordUpdates(index, result);
    numbers = NumbersOf(result, model->parameters());
  } else {
    course.EndAtLoss();
    numbers = NumbersWithoutStep(model->parameters().size(), optimizer->LossScale());
  }
  const TimedPart timed(&profile, StepPhase::kTelemetry);
  course.RecordStep(config, index, numbers, telemetry);
}

void Trainer::Parts::RecordParameters(uint64_t index) {
  const TimedPart timed(&profile, StepPhase::kTelemetry);
  for (Parameter<float>& parameter : model->parameters()) {
    RecordTensor(index, parameter.name, "weight", parameter.value.View(), telemetry);
    RecordTensor(index, parameter.name, "weight-gradient", parameter.gradient.View(), telemetry);
  }
}

void Trainer::Parts::RecordUpdates(uint64_t index, const OptimizerStep& result) {
  const TimedPart timed(&profile, StepPhase::kTelemetry);
  size_t i = 0;
  for (const Parameter<float>& parameter : model->parameters()) {
    const TensorStep& tensor = result.tensors[i++];
    const double moved =
        static_cast<double>(tensor.weights.moved) / static_cast<double>(parameter.Elements());
    telemetry.Add("optimizer",
                  {index,
                   parameter.name,
                   tensor.rms,
                   tensor.gradient_norm,
                   tensor.update_rms,
                   tensor.max_update,
                   FlushedShare(tensor.m),
                   FlushedShare(tensor.v),
                   RelativeError(tensor.m),
                   RelativeError(tensor.v),
                   moved,
                   result.skipped || tensor.skipped ? 1 : 0});
  }
}

Trainer::Trainer(const TrainConfig& config, std::shared_ptr<const DataSource> data) {
  // Its kernels would copy each matrix to the device and back: slower than the host alone.
  NUMSIM_REQUIRE(
      !UsesDevice(),
      "backend cuda: it runs operations on arrays, no training yet; expected another one of "
      "`numsim backends`");
  parts_ = std::make_unique<Parts>(config, std::move(data));
}
Trainer::~Trainer() = default;

TrainStatus Trainer::Step() {
  Parts& p = *parts_;
  NUMSIM_REQUIRE(p.course.status == TrainStatus::kRunning,
                 "Trainer::Step: the training is {}, expected running",
                 ToString(p.course.status));
  ForkIfDue();
  p.RecordValidation();
  const auto start = std::chrono::steady_clock::now();
  p.TakeStep();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  p.step_seconds += time.count();
  if (p.steps_timed == 0 || time.count() < p.fastest_step_seconds) {
    p.fastest_step_seconds = time.count();
  }
  ++p.steps_timed;
  p.RecordValidation();
  return p.course.status;
}

void Trainer::ForkIfDue() {
  if (parts_->ForkIsDue()) parts_->Fork();
}

LossSum Trainer::Validate() { return parts_->Validate(); }
void Trainer::NextBatch(Batch& batch) const { parts_->MakeBatch(0, batch); }
void Trainer::Observe(PassObserver<float>* observer) { parts_->guest = observer; }

TrainStatus Trainer::status() const { return parts_->course.status; }
const std::string& Trainer::reason() const { return parts_->course.reason; }
uint64_t Trainer::steps_taken() const { return parts_->course.step; }
double Trainer::last_loss() const { return parts_->course.losses.Last(); }
double Trainer::recent_loss() const { return parts_->course.losses.Recent(); }
const OptimizerStep& Trainer::last_update() const { return parts_->optimizer->Last(); }
const std::optional<LossSum>& Trainer::last_validation() const { return parts_->course.validation; }
const std::optional<ZeroShot>& Trainer::last_zero_shot() const { return parts_->zero_shot; }
const TrainConfig& Trainer::config() const { return parts_->whole; }
const DataSource& Trainer::data() const { return *parts_->data; }
Model<float>& Trainer::model() { return *parts_->model; }
const Model<float>& Trainer::model() const { return *parts_->model; }
Optimizer& Trainer::optimizer() { return *parts_->optimizer; }
const Optimizer& Trainer::optimizer() const { return *parts_->optimizer; }
Telemetry& Trainer::telemetry() { return parts_->telemetry; }
uint64_t Trainer::tokens_per_step() const { return TokensPerStep(parts_->config); }
std::string_view Trainer::unit() const { return UnitOf(parts_->config); }
const StepProfile& Trainer::profile() const { return parts_->profile; }
uint64_t Trainer::steps_timed() const { return parts_->steps_timed; }
double Trainer::step_seconds() const { return parts_->step_seconds; }
double Trainer::fastest_step_seconds() const { return parts_->fastest_step_seconds; }

}  // namespace numsim
