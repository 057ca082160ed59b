// The state of a Trainer in a checkpoint: saving and restoring.
#include <cstring>
#include <string_view>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/base/require.h"
#include "numsim/config/fork.h"
#include "numsim/io/array.h"
#include "numsim/train/internal/trainer_parts.h"

namespace numsim {
namespace {

constexpr std::string_view kModel = "model/", kOptimizer = "optimizer/", kScaling = "scaling/",
                           kWhatIf = "what_if/";

// Returns whether a state is behind its fork. That of a baseline is not.
bool IsForked(const TrainState& state) {
  const std::string* const text = state.FindField(kForkedField);
  return text != nullptr && *text == "yes";
}

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
  p.course.Save(p.whole, *p.data, state);
  SaveSide(p.whole, p.forked, state);
  return state;
}

void Trainer::Restore(const TrainState& state) {
  const TrainConfig& config = parts_->whole;
  RestoreParts(state, config, config.fork.steps == 0 || IsForked(state));
}

void Trainer::RestoreBaseline(const TrainState& state) {
  const TrainConfig& config = parts_->whole;
  NUMSIM_REQUIRE(config.fork.steps > 0, "Trainer::RestoreBaseline: there is no fork");
  const uint64_t steps = state.Count("step");
  if (steps > config.fork.steps) {
    throw Error::Format(
        "{} steps were taken, more than the {} before the fork", steps, config.fork.steps);
  }
  RestoreParts(state, BaselineOf(config), /*forked=*/false);
}

void Trainer::RestoreParts(const TrainState& state, const TrainConfig& of, bool forked) {
  Parts& p = *parts_;
  p.course.Restore(of, *p.data, state);
  p.BeginAt(forked);
  RestoreParameters(state, p.model->parameters());
  p.optimizer->Restore(OptimizerState(state));
  p.model->RestoreState(FloatStates(state, kScaling));
  p.what_if->Restore(FloatStates(state, kWhatIf));
  p.zero_shot = p.course.zero_shot;
  p.telemetry.Clear();
  p.profile = {};
  p.steps_timed = 0;
  p.step_seconds = p.fastest_step_seconds = 0;
}

}  // namespace numsim
