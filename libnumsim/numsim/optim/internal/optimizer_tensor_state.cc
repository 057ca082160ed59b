// What a tensor of an optimiser keeps: bytes, to a checkpoint and back.
#include <array>

#include "numsim/base/error.h"
#include "numsim/optim/internal/optimizer_tensor.h"

namespace numsim {

std::string OptimizerTensor::NameOf(const char* piece) const {
  return parameter_->name + "/" + piece;
}

Optimizer::Bytes OptimizerTensor::StoredBytes() const {
  const FormatSpec& format = config_->weights.spec;
  const double each = format.Bits() / 8.0 + StateBytesPerWeight(config_->update, format);
  Optimizer::Bytes bytes;
  bytes.m = static_cast<double>(m_->Bytes());
  if (v_) bytes.v = static_cast<double>(v_->Bytes());
  bytes.weights = each * static_cast<double>(Elements()) +
                  static_cast<double>(update_.scales.size() * sizeof(float));
  return bytes;
}

void OptimizerTensor::Save(std::vector<NamedBytes>& state) const {
  const std::array<double, 3> count = {static_cast<double>(steps_), power1_, power2_};
  state.push_back(SaveValues(NameOf("steps"), std::span<const double>(count)));
  state.push_back({NameOf("m"), m_->Save()});
  if (v_) state.push_back({NameOf("v"), v_->Save()});
  const auto save = [&](const char* piece, const auto& values) {
    if (!values.empty()) state.push_back(SaveValues(NameOf(piece), std::span(values)));
  };
  save("update.values", update_.values);
  save("update.words", update_.words);
  save("update.scales", update_.scales);
}

void OptimizerTensor::Restore(StateReader& state) {
  std::array<double, 3> count{};
  state.Read(NameOf("steps"), std::span<double>(count));
  if (!(count[0] >= 0 && count[0] < 0x1p53)) {
    throw Error::Format("optimiser state: '{}': {} steps", NameOf("steps"), count[0]);
  }
  steps_ = static_cast<uint64_t>(count[0]);
  power1_ = count[1];
  power2_ = count[2];
  const auto restore = [&](const char* piece, MomentStore& store) {
    const std::string name = NameOf(piece);
    const std::span<const std::byte> bytes = state.Find(name);
    try {
      store.Restore(bytes);
    } catch (const Error& error) {
      throw Error::Format("optimiser state: '{}': {}", name, error.what());
    }
  };
  restore("m", *m_);
  if (v_) restore("v", *v_);
  const auto read = [&](const char* piece, auto& values) {
    if (!values.empty()) state.Read(NameOf(piece), std::span(values));
  };
  read("update.values", update_.values);
  read("update.words", update_.words);
  read("update.scales", update_.scales);
}

}  // namespace numsim
