// The state of a Trainer in a checkpoint: saving and restoring.
#include <cstring>
#include <string_view>
#include <vector>

#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/array.h"
#include "numsim/io/csv.h"
#include "numsim/train/internal/continuation.h"
#include "numsim/train/internal/trainer_parts.h"

namespace numsim {
namespace {

constexpr std::string_view kModel = "model/", kOptimizer = "optimizer/", kScaling = "scaling/",
                           kWhatIf = "what_if/";

std::string Join(std::string_view prefix, std::string_view name) {
  return std::string(prefix).append(name);
}

template <typename T>
Array MakeArray(ElementType type, std::vector<size_t> shape, std::span<const T> values) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return {type, std::move(shape), {bytes.begin(), bytes.end()}};
}

template <typename T>
std::vector<T> Values(const Array& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

void RequireType(std::string_view name, const Array& array, ElementType type) {
  if (array.type == type) return;
  throw Error::Format("tensor '{}' is {}, expected {}", name, ToString(array.type), ToString(type));
}

// Restores every parameter from "model/NAME". Throws Error for a missing or surplus "model/"
// tensor.
void RestoreParameters(const TrainState& state, ParameterList<float>& parameters) {
  for (const auto& [name, array] : state.tensors) {
    if (!name.starts_with(kModel)) continue;
    const std::string parameter = name.substr(kModel.size());
    if (parameters.Find(parameter) == nullptr) {
      throw Error::Format("tensor '{}': the model has no such parameter", Printable(name));
    }
  }
  for (Parameter<float>& parameter : parameters) {
    const std::string name = Join(kModel, parameter.name);
    const Array* const array = state.FindTensor(name);
    if (array == nullptr) throw Error::Format("tensor '{}' is missing", name);
    RequireType(name, *array, ElementType::kF32);
    const MatrixSpan<float> value = parameter.value.View();
    const std::vector<size_t> shape = {value.rows, value.cols};
    if (array->shape != shape) {
      throw Error::Format("tensor '{}' has shape {}, expected {}",
                          name,
                          ShapeToString(array->shape),
                          ShapeToString(shape));
    }
    std::memcpy(value.Span().data(), array->bytes.data(), array->bytes.size());
  }
}

// Returns the tensors whose names begin with kOptimizer, without that prefix.
std::vector<NamedBytes> OptimizerState(const TrainState& state) {
  std::vector<NamedBytes> result;
  for (const auto& [name, array] : state.tensors) {
    if (!name.starts_with(kOptimizer)) continue;
    RequireType(name, array, ElementType::kU8);
    result.push_back({name.substr(kOptimizer.size()), array.bytes});
  }
  return result;
}

// Returns the float32 states whose names begin with `prefix`, without that prefix.
std::vector<NamedState> FloatStates(const TrainState& state, std::string_view prefix) {
  std::vector<NamedState> result;
  for (const auto& [name, array] : state.tensors) {
    if (!name.starts_with(prefix)) continue;
    RequireType(name, array, ElementType::kF32);
    result.push_back({name.substr(prefix.size()), Values<float>(array)});
  }
  return result;
}

void AppendFloatStates(const std::vector<NamedState>& entries,
                       std::string_view prefix,
                       TrainState& state) {
  for (const NamedState& entry : entries) {
    state.tensors.emplace_back(
        Join(prefix, entry.name),
        MakeArray<float>(ElementType::kF32, {entry.values.size()}, entry.values));
  }
}

// Returns the example counts, which identify the data of a checkpoint; the path may change.
std::string DataText(const DataShape& shape) {
  return fmt::format("{} {}", shape.train_examples, shape.valid_examples);
}

// Lengths of the field "validation": step and loss, followed for contrastive models by the
// retrieval result. If the retrieval result is missing, as in files of earlier versions, there is
// none until the next validation.
constexpr size_t kLossNumbers = 4, kRetrievalNumbers = 7;

std::vector<double> ValidationNumbers(uint64_t step,
                                      const LossSum& loss,
                                      const std::optional<ZeroShot>& zero_shot) {
  std::vector<double> numbers = {static_cast<double>(step),
                                 loss.sum,
                                 static_cast<double>(loss.counted),
                                 static_cast<double>(loss.correct)};
  if (!zero_shot.has_value()) return numbers;
  for (const size_t count : {zero_shot->images, zero_shot->correct, zero_shot->concepts}) {
    numbers.push_back(static_cast<double>(count));
  }
  return numbers;
}

void RestoreValidation(const std::vector<double>& numbers,
                       uint64_t& step,
                       std::optional<LossSum>& loss,
                       std::optional<ZeroShot>& zero_shot) {
  loss.reset();
  zero_shot.reset();
  if (numbers.empty()) return;
  if (numbers.size() != kLossNumbers && numbers.size() != kRetrievalNumbers) {
    throw Error::Format("field 'validation' has {} numbers", numbers.size());
  }
  const auto count = [&](size_t i) { return static_cast<size_t>(numbers[i]); };
  step = static_cast<uint64_t>(numbers[0]);
  loss = LossSum{numbers[1], count(2), count(3)};
  if (numbers.size() == kRetrievalNumbers) zero_shot = ZeroShot{count(4), count(5), count(6)};
}

}  // namespace

TrainState Trainer::Save() const {
  const Parts& p = *parts_;
  TrainState state;
  for (const Parameter<float>& parameter : p.model->parameters()) {
    const In<float> value = parameter.value.View();
    RequireHost("a checkpoint", {value.place});
    state.tensors.emplace_back(
        Join(kModel, parameter.name),
        MakeArray<float>(ElementType::kF32, {value.rows, value.cols}, value.Span()));
  }
  for (NamedBytes& entry : p.optimizer->Save()) {
    const size_t size = entry.bytes.size();
    state.tensors.emplace_back(Join(kOptimizer, entry.name),
                               Array{ElementType::kU8, {size}, std::move(entry.bytes)});
  }
  AppendFloatStates(p.model->SaveState(), kScaling, state);
  AppendFloatStates(p.what_if->Save(), kWhatIf, state);
  std::vector<double> validation;
  if (p.validation.has_value()) {
    validation = ValidationNumbers(p.validated_at, *p.validation, p.validation_zero_shot);
  }
  state.fields = {{"version", std::string(BuildVersion())},
                  {"config", WriteTrainConfig(p.config)},
                  {"data", DataText(p.data->shape())},
                  {"step", FormatCell(p.step)},
                  {"status", std::string(ToString(p.status))},
                  {"reason", p.reason},
                  {"losses", NumbersText(p.losses.Save())},
                  {"validation", NumbersText(validation)}};
  return state;
}

void Trainer::Restore(const TrainState& state) {
  Parts& p = *parts_;
  CheckContinues(p.config, state.Field("config"));
  if (state.Field("data") != DataText(p.data->shape())) {
    throw Error::Format(
        "the data differ: {} examples for training and validation, {} in the checkpoint",
        DataText(p.data->shape()),
        Printable(state.Field("data")));
  }
  RestoreParameters(state, p.model->parameters());
  p.optimizer->Restore(OptimizerState(state));
  p.model->RestoreState(FloatStates(state, kScaling));
  p.what_if->Restore(FloatStates(state, kWhatIf));
  p.step = state.Count("step");
  p.losses.Restore(state.Numbers("losses"));
  RestoreValidation(
      state.Numbers("validation"), p.validated_at, p.validation, p.validation_zero_shot);
  p.zero_shot = p.validation_zero_shot;
  p.reason = state.Field("reason");
  p.status = ParseTrainStatus(state.Field("status"));
  if (p.status != TrainStatus::kDiverged) {
    p.status = p.step < p.config.train.steps ? TrainStatus::kRunning : TrainStatus::kFinished;
  }
  p.telemetry.Clear();
  p.profile = {};
  p.steps_timed = 0;
  p.step_seconds = p.fastest_step_seconds = 0;
}

}  // namespace numsim
