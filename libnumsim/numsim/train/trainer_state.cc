// What a checkpoint holds of a Trainer.
#include <cstring>
#include <string_view>
#include <vector>

#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/io/csv.h"
#include "numsim/io/printable.h"
#include "numsim/io/shape.h"
#include "numsim/train/continuation.h"
#include "numsim/train/trainer_parts.h"

namespace numsim {
namespace {

constexpr std::string_view kModel = "model/", kOptimizer = "optimizer/", kScaling = "scaling/";

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
  throw Error::Format("tensor '{}' is {}, expected {}", name, Name(array.type), Name(type));
}

// Every parameter from "model/NAME", and no tensor of that kind beside them.
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
    const MatrixRef<float> value = parameter.value.View();
    const std::vector<size_t> shape = {value.rows, value.cols};
    if (array->shape != shape) {
      throw Error::Format(
          "tensor '{}' has shape {}, expected {}", name, ShapeText(array->shape), ShapeText(shape));
    }
    std::memcpy(value.Span().data(), array->bytes.data(), array->bytes.size());
  }
}

// Those whose names begin with `prefix`, which is taken off.
std::vector<NamedBytes> OptimizerState(const TrainState& state) {
  std::vector<NamedBytes> result;
  for (const auto& [name, array] : state.tensors) {
    if (!name.starts_with(kOptimizer)) continue;
    RequireType(name, array, ElementType::kU8);
    result.push_back({name.substr(kOptimizer.size()), array.bytes});
  }
  return result;
}

std::vector<NamedState> ScalingState(const TrainState& state) {
  std::vector<NamedState> result;
  for (const auto& [name, array] : state.tensors) {
    if (!name.starts_with(kScaling)) continue;
    RequireType(name, array, ElementType::kF32);
    result.push_back({name.substr(kScaling.size()), Values<float>(array)});
  }
  return result;
}

// The counts that tell data of one length from others; a path may change.
std::string DataText(const DataShape& shape) {
  return fmt::format("{} {}", shape.train_examples, shape.valid_examples);
}

void RestoreValidation(const std::vector<double>& numbers,
                       std::optional<LossSum>& validation,
                       uint64_t& validated_at) {
  validation.reset();
  if (numbers.empty()) return;
  if (numbers.size() != 4) throw Error::Format("field 'validation' has {} numbers", numbers.size());
  validated_at = static_cast<uint64_t>(numbers[0]);
  validation =
      LossSum{numbers[1], static_cast<size_t>(numbers[2]), static_cast<size_t>(numbers[3])};
}

}  // namespace

TrainState Trainer::Save() const {
  const Parts& p = *parts_;
  TrainState state;
  for (const Parameter<float>& parameter : p.model->parameters()) {
    const MatrixRef<float> value = parameter.value.View();
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
  for (const NamedState& entry : p.model->SaveState()) {
    state.tensors.emplace_back(
        Join(kScaling, entry.name),
        MakeArray<float>(ElementType::kF32, {entry.values.size()}, entry.values));
  }
  std::vector<double> validation;
  if (p.validation.has_value()) {
    validation = {static_cast<double>(p.validated_at),
                  p.validation->sum,
                  static_cast<double>(p.validation->counted),
                  static_cast<double>(p.validation->correct)};
  }
  state.fields = {{"version", std::string(BuildVersion())},
                  {"config", WriteTrainConfig(p.config)},
                  {"data", DataText(p.data->shape())},
                  {"step", Cell(p.step)},
                  {"status", std::string(Name(p.status))},
                  {"reason", p.reason},
                  {"losses", NumbersText(p.losses.Save())},
                  {"validation", NumbersText(validation)}};
  return state;
}

void Trainer::Restore(const TrainState& state) {
  Parts& p = *parts_;
  CheckContinues(p.config, state.Field("config"));
  if (state.Field("data") != DataText(p.data->shape())) {
    throw Error::Format("other data: {} examples for training and for validation now, {} then",
                        DataText(p.data->shape()),
                        Printable(state.Field("data")));
  }
  RestoreParameters(state, p.model->parameters());
  p.optimizer->Restore(OptimizerState(state));
  p.model->RestoreState(ScalingState(state));
  p.step = state.Count("step");
  p.losses.Restore(state.Numbers("losses"));
  RestoreValidation(state.Numbers("validation"), p.validation, p.validated_at);
  p.reason = state.Field("reason");
  p.status = ParseTrainStatus(state.Field("status"));
  if (p.status != TrainStatus::kDiverged) {
    p.status = p.step < p.config.train.steps ? TrainStatus::kRunning : TrainStatus::kFinished;
  }
  p.telemetry.Clear();
  p.profile = {};
  p.steps_timed = 0;
  p.step_seconds = 0;
}

}  // namespace numsim
