// The state of an optimiser at a place: its size in bytes, saving and restoring.
#include <array>

#include "numsim/base/error.h"
#include "numsim/optim/internal/optimizer_at_place.h"
#include "numsim/optim/internal/optimizer_stores.h"
#include "numsim/optim/internal/optimizer_tensor.h"
#include "numsim/optim/internal/place_memory.h"

namespace numsim {
namespace {

constexpr const char* kStateNames[2] = {"/m", "/v"};

template <typename T>
void SavePiece(std::string name, const Buffer<T>& values, std::vector<NamedBytes>& state) {
  if (values.View().Empty()) return;
  const std::vector<T> host = ToVector(values.View());
  state.push_back(SaveValues(std::move(name), std::span<const T>(host)));
}

template <typename T>
void ReadPiece(const std::string& name, Buffer<T>& values, StateReader& state) {
  if (values.View().Empty()) return;
  std::vector<T> host(values.View().Elements());
  state.Read(name, std::span<T>(host));
  CopyMatrix<T>(host, values.View());
}

}  // namespace

Optimizer::Bytes OptimizerAtPlace::StoredBytes(size_t i) const {
  const Tensor& tensor = tensors_[i];
  const FormatSpec& format = config_.weights.spec;
  const double each = format.Bits() / 8.0 + StateBytesPerWeight(config_.update, format);
  Optimizer::Bytes bytes;
  bytes.m = static_cast<double>(tensor.moments[0].Bytes());
  if (tensor.moments.size() == 2) bytes.v = static_cast<double>(tensor.moments[1].Bytes());
  bytes.weights = each * static_cast<double>(tensor.parameter->Elements()) +
                  static_cast<double>(tensor.update.scales.View().Bytes());
  return bytes;
}

std::vector<NamedBytes> OptimizerAtPlace::Save() {
  Last();
  const std::vector<TensorState> states = Fetch<TensorState>(states_there_, tensors_.size());
  std::vector<NamedBytes> state;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const std::string& name = tensor.parameter->name;
    const StepCount& steps = states[i].count;
    const std::array<double, 3> count = {
        static_cast<double>(steps.steps), steps.power1, steps.power2};
    state.push_back(SaveValues(name + "/steps", std::span<const double>(count)));
    for (size_t s = 0; s < tensor.moments.size(); ++s) {
      state.push_back({name + kStateNames[s], tensor.moments[s].Save()});
    }
    SavePiece(name + "/update.values", tensor.update.values, state);
    SavePiece(name + "/update.words", tensor.update.words, state);
    SavePiece(name + "/update.scales", tensor.update.scales, state);
  }
  return state;
}

void OptimizerAtPlace::Restore(StateReader& state) {
  std::vector<TensorState> states(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    const std::string& name = tensor.parameter->name;
    // The greatest magnitudes are not known: the next step looks at all elements first.
    states[i] = {ReadStepCount(name + "/steps", state), kNotKnown, kNotKnown};
    for (size_t s = 0; s < tensor.moments.size(); ++s) {
      RestoreMoment(name + kStateNames[s], tensor.moments[s], state);
    }
    ReadPiece(name + "/update.values", tensor.update.values, state);
    ReadPiece(name + "/update.words", tensor.update.words, state);
    ReadPiece(name + "/update.scales", tensor.update.scales, state);
  }
  CopyIn(states, states_there_);
}

void OptimizerAtPlace::SetScaler(const LossScaler::State& state) {
  Last();
  scaler_.Restore(state);
  CopyIn(std::vector<StepPlan>{{.scaler = state}}, step_there_);
}

}  // namespace numsim
