#include "numsim/analysis/step_replay.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/train/shared/tensor_telemetry.h"
#include "numsim/train/stress.h"

namespace numsim {
namespace {

// Processes the tensors of a replay as the trainer's observer processes those of a step: injects
// the perturbation and rounds for storage.
template <typename T>
class ReplayObserver;

template <>
class ReplayObserver<float> final : public PassObserver<float> {
 public:
  ReplayObserver(const ReplayPrecision& precision,
                 const StressConfig& stress,
                 PassObserver<float>* next)
      : precision_(precision),
        rounding_(precision.storage, stress),
        plain_(StorageConfig(), stress),
        next_(next) {}

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    (Rounds(point, role) ? rounding_ : plain_).Tensor(point, role, values);
    if (next_ != nullptr) next_->Tensor(point, role, values);
  }

  void Input(std::string_view layer, MatrixSpan<const float> x) override {
    if (next_ != nullptr) next_->Input(layer, x);
  }

  void Quantized(std::string_view layer,
                 LinearOperand operand,
                 In<float> original,
                 const QuantizedMatrix& quantized) override {
    if (next_ != nullptr) next_->Quantized(layer, operand, original, quantized);
  }

  void Multiplied(std::string_view layer, LinearGemm product) override {
    if (next_ != nullptr) next_->Multiplied(layer, product);
  }

 private:
  bool Rounds(std::string_view point, TensorRole role) const {
    const auto is = [&](const std::optional<StoredTensor>& tensor) {
      return tensor->role == role && tensor->point == point;
    };
    if (precision_.unrounded.has_value() && is(precision_.unrounded)) return false;
    return !precision_.only_rounded.has_value() || is(precision_.only_rounded);
  }

  const ReplayPrecision& precision_;
  TensorObserver rounding_, plain_;
  PassObserver<float>* next_;
};

template <>
class ReplayObserver<double> final : public PassObserver<double> {
 public:
  ReplayObserver(const ReplayPrecision&, const StressConfig& stress, PassObserver<double>* next)
      : stress_(stress), next_(next) {}

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<double> values) override {
    if (role == TensorRole::kActivation) PlantActivation(stress_, point, values);
    if (next_ != nullptr) next_->Tensor(point, role, values);
  }

 private:
  const StressConfig& stress_;
  PassObserver<double>* next_;
};

template <typename T>
void CopyParameters(const std::vector<std::vector<float>>& values, ParameterList<T>& parameters) {
  NUMSIM_CHECK(values.size() == parameters.size(), "{} parameters", values.size());
  auto from = values.begin();
  for (Parameter<T>& parameter : parameters) {
    const std::span<T> to = parameter.value.View().Span();
    NUMSIM_CHECK(from->size() == to.size(), "{}", parameter.name);
    std::copy(from->begin(), from->end(), to.begin());
    ++from;
  }
}

// Restores the state of the layers that also have delayed scaling in the replay's precision.
template <typename T>
void RestoreScaling(const std::vector<NamedState>& scaling, Model<T>& model) {
  std::vector<NamedState> restored;
  for (const NamedState& own : model.SaveState()) {
    const auto found = std::find_if(scaling.begin(), scaling.end(), [&](const NamedState& state) {
      return state.name == own.name;
    });
    if (found != scaling.end()) restored.push_back(*found);
  }
  model.RestoreState(restored);
}

void Move(const std::vector<NamedGradient<double>>& direction,
          double distance,
          ParameterList<double>& parameters) {
  NUMSIM_REQUIRE(direction.size() == parameters.size(),
                 "StepReplay::RunMoved: a direction of {} parameters, and the model has {}",
                 direction.size(),
                 parameters.size());
  auto along = direction.begin();
  for (Parameter<double>& parameter : parameters) {
    const std::span<double> values = parameter.value.View().Span();
    RequireSize(along->values.size(), values.size(), "StepReplay::RunMoved", "values");
    for (size_t i = 0; i < values.size(); ++i) values[i] += distance * along->values[i];
    ++along;
  }
}

template <typename T>
NamedGradient<T> GradientOf(const Parameter<T>& parameter, double loss_scale) {
  const In<T> gradient = parameter.gradient.View();
  const std::span<const T> scaled = gradient.Span();
  NamedGradient<T> result{parameter.name, parameter.role, {gradient.rows, gradient.cols}, {}};
  result.values.assign(scaled.begin(), scaled.end());
  if (loss_scale != 1) {
    for (T& value : result.values) value /= static_cast<T>(loss_scale);
  }
  return result;
}

}  // namespace

template <typename T>
const NamedGradient<T>* StepGradients<T>::Find(std::string_view name) const {
  const auto found = std::find_if(gradients.begin(), gradients.end(), [&](const auto& gradient) {
    return gradient.name == name;
  });
  return found == gradients.end() ? nullptr : &*found;
}

ReplayPrecision PrecisionOf(const TrainConfig& config) {
  return {config.linear, config.storage, {}, {}};
}

ReplayPrecision Float32Precision() {
  ReplayPrecision precision;
  precision.linear.all.high_precision = "fp32";
  return precision;
}

struct StepReplay::Parts {
  TrainConfig config;
  uint64_t step = 0;
  double loss_scale = 1;
  Batch batch;
  std::vector<std::vector<float>> parameters;
  std::vector<NamedState> scaling;

  // Passes the batch through a model with these parameters, forward and backward.
  template <typename T>
  StepGradients<T> PassThrough(Model<T>& model, PassObserver<T>* observer) const;
};

template <typename T>
StepGradients<T> StepReplay::Parts::PassThrough(Model<T>& model, PassObserver<T>* observer) const {
  Pass<T> pass;
  pass.seed = config.train.seed;
  pass.step = step;
  pass.loss_scale = config.stress.LossFactor(step) * loss_scale;
  pass.training = true;
  pass.observer = observer;
  StepGradients<T> result;
  result.loss = model.Forward(pass, batch);
  model.Backward(pass);
  for (const Parameter<T>& parameter : model.parameters()) {
    result.gradients.push_back(GradientOf(parameter, loss_scale));
  }
  return result;
}

StepReplay::StepReplay(const Trainer& trainer) {
  if (trainer.config().train.accumulate != 1) {
    throw KeyError("train.accumulate", "only a step of one part can be replayed, expected 1");
  }
  auto parts = std::make_unique<Parts>();
  parts->config = trainer.config();
  parts->step = trainer.steps_taken();
  parts->loss_scale = trainer.optimizer().LossScale();
  trainer.NextBatch(parts->batch);
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    const std::span<const float> values = parameter.value.View().Span();
    parts->parameters.emplace_back(values.begin(), values.end());
  }
  parts->scaling = trainer.model().SaveState();
  parts_ = std::move(parts);
}
StepReplay::~StepReplay() = default;

const TrainConfig& StepReplay::config() const { return parts_->config; }
uint64_t StepReplay::step() const { return parts_->step; }

template <typename T>
StepGradients<T> StepReplay::Run(const ReplayPrecision& precision,
                                 PassObserver<T>* observer) const {
  const Parts& p = *parts_;
  constexpr bool kReference = std::is_same_v<T, double>;
  const auto model = MakeModel<T>(p.config.model,
                                  kReference ? Float32Precision().linear : precision.linear,
                                  p.config.train.seed,
                                  InitialValues::kMeans);
  CopyParameters(p.parameters, model->parameters());
  RestoreScaling(p.scaling, *model);
  ReplayObserver<T> replay_observer(precision, p.config.stress, observer);
  return p.PassThrough<T>(*model, &replay_observer);
}

StepGradients<double> StepReplay::RunMoved(const std::vector<NamedGradient<double>>& direction,
                                           double distance) const {
  const Parts& p = *parts_;
  const ReplayPrecision precision = Float32Precision();
  const auto model = MakeModel<double>(
      p.config.model, precision.linear, p.config.train.seed, InitialValues::kMeans);
  CopyParameters(p.parameters, model->parameters());
  Move(direction, distance, model->parameters());
  ReplayObserver<double> observer(precision, p.config.stress, nullptr);
  return p.PassThrough<double>(*model, &observer);
}

template struct StepGradients<float>;
template struct StepGradients<double>;
template StepGradients<float> StepReplay::Run(const ReplayPrecision&, PassObserver<float>*) const;
template StepGradients<double> StepReplay::Run(const ReplayPrecision&, PassObserver<double>*) const;

}  // namespace numsim
