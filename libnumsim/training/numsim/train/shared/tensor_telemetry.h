// The observer of a training's passes: injects the configured perturbation into tensors, rounds
// them to their storage format, and measures them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "numsim/config/config.h"
#include "numsim/models/pass.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/train/telemetry.h"

namespace numsim {

class TensorObserver : public PassObserver<float> {
 public:
  explicit TensorObserver(const StorageConfig& storage, const StressConfig& stress = {});

  // Returns true if the observer changes tensors, so that a pass needs it even when nothing is
  // measured: a storage format is not fp32, or a perturbation is configured.
  bool ChangesTensors() const {
    return activations_.has_value() || gradients_.has_value() || !stress_.point.empty();
  }

  // Sets the outputs for the passes that follow. If `telemetry` is not null, every observed tensor,
  // as stored, becomes a row of the table `tensors`, and every quantised operand a row of
  // `quantised`, both for step `step`. If `profile` is not null, times are added to it; time spent
  // measuring during a linear layer's kQuantize phase is moved to kTelemetry. `guest`, if not null,
  // sees everything first, and tensors before they are stored.
  void Begin(uint64_t step,
             Telemetry* telemetry,
             StepProfile* profile,
             PassObserver<float>* guest = nullptr);

  void Input(std::string_view layer, MatrixSpan<const float> x) override;
  void Multiplied(std::string_view layer, LinearGemm product) override;
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override;
  void Quantized(std::string_view layer,
                 LinearOperand operand,
                 In<float> original,
                 const QuantizedMatrix& quantized) override;

 private:
  std::optional<EncodePlan> activations_, gradients_;  // nullopt: fp32
  StressConfig stress_;
  Telemetry* telemetry_ = nullptr;
  StepProfile* profile_ = nullptr;
  PassObserver<float>* guest_ = nullptr;
  uint64_t step_ = 0;
  Buffer<float> dequantized_;
};

// Adds a row to the table `tensors` that describes one tensor at one step.
void RecordTensor(uint64_t step,
                  std::string_view point,
                  std::string_view role,
                  MatrixSpan<float> values,
                  Telemetry& telemetry);

}  // namespace numsim
