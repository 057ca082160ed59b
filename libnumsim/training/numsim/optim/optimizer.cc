#include "numsim/optim/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/optim/internal/optimizer_at_place.h"
#include "numsim/optim/internal/optimizer_tensor.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/random/streams.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

constexpr const char* kScalerPiece = "loss_scaler";

// Gradients with a larger norm would overflow when the loss scale is taken out, or when they are
// squared twice.
constexpr double kNormLimit = 0x1p127;

double RootMean(double square, size_t n) {
  return n == 0 ? 0 : std::sqrt(square / static_cast<double>(n));
}

LossScaler::State ReadScaler(StateReader& reader) {
  std::array<double, 3> numbers{};
  reader.Read(kScalerPiece, std::span<double>(numbers));
  const auto count = [](double number) {
    return number >= 0 && number < 0x1p53 ? static_cast<uint64_t>(number) : UINT64_MAX;
  };
  return {numbers[0], count(numbers[1]), count(numbers[2])};
}

}  // namespace

bool HaveSameWeights(const OptimizerConfig& a, const OptimizerConfig& b) {
  return ToString(a.update) == ToString(b.update) && a.weights.name == b.weights.name;
}

Optimizer::Optimizer(const OptimizerConfig& config,
                     const LossScalerConfig& scaler,
                     ParameterList<float>& parameters,
                     uint64_t seed)
    : config_(config),
      parameters_(parameters),
      seed_(seed),
      scaler_(scaler),
      scratch_(std::make_unique<OptimizerScratch>()) {
  CheckOptimizerConfig(config);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!parameters.place().IsHost()) {
      there_ = std::make_unique<OptimizerAtPlace>(
          config_, scaler, parameters, seed, MakeDeviceRunner(parameters.place()));
      return;
    }
  }
  size_t largest = 0, all = 0;
  tensors_.reserve(parameters.size());
  for (Parameter<float>& parameter : parameters) {
    tensors_.emplace_back(config_, parameter, tensors_.size());
    tensors_.back().Reserve(*scratch_);
    largest = std::max(largest, parameter.Elements());
    all += parameter.Elements();
  }
  // A single RMS over all tensors needs all directions in memory.
  directions_.resize(config.stable.global ? all : largest);
}

Optimizer::~Optimizer() = default;

// Computes the norms of the gradients and marks the tensors whose gradient is not finite. Those that
// are marked already have none.
void Optimizer::MeasureGradients() {
  const double scale = scaler_.Scale();
  double square = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorStep& tensor = result_.tensors[i];
    if (tensor.skipped) continue;
    const double own = SquaredSum(tensors_[i].Gradient());
    tensor.gradient_norm = std::sqrt(own) / scale;
    if (tensor.gradient_norm < kNormLimit) {  // false for NaN
      square += own;
      continue;
    }
    tensor.gradient_norm = std::numeric_limits<double>::infinity();
    tensor.skipped = true;
    result_.finite = false;
  }
  result_.gradient_norm = std::sqrt(square) / scale;
}

void Optimizer::TakeSteps(const OptimizerInputs& inputs) {
  const bool global = config_.stable.global && config_.kind.row->clips_by_rms;
  double square = 0;
  size_t offset = 0, elements = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (result_.tensors[i].skipped) continue;
    const size_t n = tensors_[i].Elements();
    const std::span<float> direction = std::span(directions_).subspan(global ? offset : 0, n);
    const double own = tensors_[i].MakeDirection(inputs, *scratch_, direction, result_.tensors[i]);
    if (!global) tensors_[i].TakeStep(inputs, RootMean(own, n), direction, result_.tensors[i]);
    square += own;
    offset += n;
    elements += n;
  }
  if (!global) return;
  offset = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (result_.tensors[i].skipped) continue;
    const std::span<float> direction =
        std::span(directions_).subspan(offset, tensors_[i].Elements());
    tensors_[i].TakeStep(inputs, RootMean(square, elements), direction, result_.tensors[i]);
    offset += direction.size();
  }
}

const OptimizerStep& Optimizer::Step(double learning_rate,
                                     uint64_t step,
                                     bool measure,
                                     std::span<const uint8_t> without) {
  const DefaultFloatEnvironment environment;
  NUMSIM_REQUIRE(std::isfinite(static_cast<float>(learning_rate)) && learning_rate >= 0,
                 "Optimizer::Step: learning_rate is {}, expected finite and >= 0",
                 learning_rate);
  NUMSIM_REQUIRE(without.empty() || without.size() == parameters_.size(),
                 "Optimizer::Step: without has {} elements, expected {}",
                 without.size(),
                 parameters_.size());
  if (there_ != nullptr) {
    there_->Step(learning_rate, step, measure, without);
    return there_->Fetched();
  }
  std::vector<TensorStep> tensors = std::move(result_.tensors);
  result_ = {};
  tensors.assign(tensors_.size(), {});
  result_.tensors = std::move(tensors);
  for (size_t i = 0; i < without.size(); ++i) result_.tensors[i].skipped = without[i] != 0;
  result_.learning_rate = learning_rate;
  result_.loss_scale = scaler_.Scale();
  MeasureGradients();
  const double scale = scaler_.Scale();
  result_.skipped = !scaler_.Update(result_.finite);
  const bool moves = result_.finite || scaler_.config().kind == LossScaling::kTensor;
  if (result_.skipped || !moves) {
    result_.gradient_norm = std::numeric_limits<double>::infinity();
    return result_;
  }
  if (config_.clip_norm > 0 && result_.gradient_norm > config_.clip_norm) {
    result_.clip_factor = config_.clip_norm / result_.gradient_norm;
  }
  OptimizerInputs inputs;
  inputs.factor = static_cast<float>(result_.clip_factor / scale);
  inputs.learning_rate = learning_rate;
  inputs.step = step;
  inputs.measure = measure;
  inputs.moment_seed = DeriveSeed(seed_, RandomPurpose::kMoments);
  inputs.update_seed = DeriveSeed(seed_, RandomPurpose::kUpdate);
  TakeSteps(inputs);
  return result_;
}

double Optimizer::LossScale() const {
  return there_ != nullptr ? there_->LossScale() : scaler_.Scale();
}

const OptimizerStep& Optimizer::Last() const {
  return there_ != nullptr ? there_->Last() : result_;
}

void Optimizer::SetOnlyWriter(bool only_writer) {
  if (there_ != nullptr) there_->SetOnlyWriter(only_writer);
}
void Optimizer::SetReports(bool reports) {
  if (there_ != nullptr) there_->SetReports(reports);
}

Optimizer::Bytes Optimizer::TotalBytes(size_t tensor) const {
  return there_ != nullptr ? there_->StoredBytes(tensor) : tensors_[tensor].StoredBytes();
}

Optimizer::Bytes Optimizer::StoredBytes(size_t tensor) const {
  NUMSIM_REQUIRE(tensor < parameters_.size(),
                 "Optimizer::StoredBytes: tensor {}, expected less than {}",
                 tensor,
                 parameters_.size());
  const Bytes bytes = TotalBytes(tensor);
  const auto n = static_cast<double>(std::max<size_t>(parameters_[tensor].Elements(), 1));
  return {bytes.m / n, bytes.v / n, bytes.weights / n, bytes.other / n};
}

Optimizer::Bytes Optimizer::StoredBytes() const {
  Bytes all;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Bytes bytes = TotalBytes(i);
    all.m += bytes.m;
    all.v += bytes.v;
    all.weights += bytes.weights;
    all.other += bytes.other;
  }
  const auto n = static_cast<double>(std::max<size_t>(parameters_.Elements(), 1));
  return {all.m / n, all.v / n, all.weights / n, all.other / n};
}

std::vector<NamedBytes> Optimizer::Save() const {
  std::vector<NamedBytes> state;
  if (there_ != nullptr) state = there_->Save();
  for (const OptimizerTensor& tensor : tensors_) tensor.Save(state);
  const LossScaler::State scaler = there_ != nullptr ? there_->Scaler() : scaler_.Save();
  const std::array<double, 3> numbers = {
      scaler.scale, static_cast<double>(scaler.taken_in_row), static_cast<double>(scaler.skipped)};
  state.push_back(SaveValues(kScalerPiece, std::span<const double>(numbers)));
  return state;
}

void Optimizer::Restore(const std::vector<NamedBytes>& state) {
  StateReader reader(state);
  if (there_ != nullptr) there_->Restore(reader);
  for (OptimizerTensor& tensor : tensors_) tensor.Restore(reader);
  const LossScaler::State scaler = ReadScaler(reader);
  reader.CheckAllFound();
  scaler_.Restore(scaler);
  if (there_ != nullptr) there_->SetScaler(scaler);
}

void Optimizer::GoOnFrom(const Former& former) {
  NUMSIM_REQUIRE(there_ == nullptr, "Optimizer::GoOnFrom: the parameters are on a device");
  StateReader reader(former.state);
  const uint64_t seed = DeriveSeed(seed_, RandomPurpose::kMoments);
  for (OptimizerTensor& tensor : tensors_) {
    tensor.GoOnFrom(former.config, reader, former.step, seed);
  }
  if (former.scaler == scaler_.config()) scaler_.Restore(ReadScaler(reader));
}

}  // namespace numsim
