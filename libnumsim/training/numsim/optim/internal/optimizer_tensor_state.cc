// The state of one tensor of an optimiser: its size in bytes, saving and restoring.
#include <array>

#include "numsim/base/error.h"
#include "numsim/optim/internal/optimizer_tensor.h"

namespace numsim {

namespace {

// Sets the random bits of a fork apart from those of steps, which number less than 2^37.
constexpr uint64_t kOfFork = uint64_t{1} << 57;

}  // namespace

StepCount ReadStepCount(const std::string& name, StateReader& state) {
  std::array<double, 3> count{};
  state.Read(name, std::span<double>(count));
  if (!(count[0] >= 0 && count[0] < 0x1p53)) {
    throw Error::Format("optimiser state: '{}': invalid step count {}", name, count[0]);
  }
  return {static_cast<uint64_t>(count[0]), count[1], count[2]};
}

std::string OptimizerTensor::NameOf(const char* piece) const {
  return parameter_->name + "/" + piece;
}

Optimizer::Bytes OptimizerTensor::StoredBytes() const {
  const FormatSpec& format = config_->weights.spec;
  const double each = format.Bits() / 8.0 + StateBytesPerWeight(config_->update, format);
  Optimizer::Bytes bytes;
  bytes.m = states_.Bytes(StateRole::kFirstMoment);
  bytes.v = states_.Bytes(StateRole::kSecondMoment);
  bytes.other = states_.Bytes(StateRole::kOther);
  bytes.weights =
      each * static_cast<double>(Elements()) + static_cast<double>(update_.scales.View().Bytes());
  return bytes;
}

void OptimizerTensor::Save(std::vector<NamedBytes>& state) const {
  const std::array<double, 3> count = {
      static_cast<double>(count_.steps), count_.power1, count_.power2};
  state.push_back(SaveValues(NameOf("steps"), std::span<const double>(count)));
  states_.Save(parameter_->name, state);
  const auto save = [&](const char* piece, auto values) {
    if (!values.empty()) state.push_back(SaveValues(NameOf(piece), values));
  };
  save("update.values", update_.values.Span());
  save("update.words", update_.words.Span());
  save("update.scales", update_.scales.Span());
}

void OptimizerTensor::Restore(StateReader& state) {
  count_ = ReadStepCount(NameOf("steps"), state);
  states_.Restore(parameter_->name, state);
  RestoreUpdate(state);
}

void OptimizerTensor::GoOnFrom(const OptimizerConfig& former,
                               StateReader& state,
                               uint64_t step,
                               uint64_t seed) {
  count_ = ReadStepCount(NameOf("steps"), state);
  states_.GoOnFrom(former, *parameter_, state, {seed, kOfFork + StreamOf(step)});
  if (HaveSameWeights(former, *config_)) RestoreUpdate(state);
}

void OptimizerTensor::RestoreUpdate(StateReader& state) {
  const auto read = [&](const char* piece, auto values) {
    if (!values.empty()) state.Read(NameOf(piece), values);
  };
  read("update.values", update_.values.Span());
  read("update.words", update_.words.Span());
  read("update.scales", update_.scales.Span());
}

}  // namespace numsim
