// What looks at the tensors of a pass: plants stress in them, rounds them to the format they are
// stored in, and measures them.
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

  // Whether a pass needs it when nothing is measured: tensors are stored in a format, or something
  // is added to them before.
  bool ChangesTensors() const {
    return activations_.has_value() || gradients_.has_value() || !stress_.point.empty();
  }

  // For the passes that follow. With `telemetry` every tensor that is shown, as stored, is a row of
  // `tensors`, and every quantised operand one of `quantised`, of step `step`. Times go to
  // `profile`, also that of measuring within a part of the layers' (kTelemetry). Both may be null.
  void Begin(uint64_t step, Telemetry* telemetry, StepProfile* profile);

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override;
  void Quantised(std::string_view layer,
                 LinearOperand operand,
                 const MatrixView& original,
                 const QuantizedMatrix& quantised) override;

 private:
  std::optional<EncodePlan> activations_, gradients_;  // none: fp32
  StressConfig stress_;
  Telemetry* telemetry_ = nullptr;
  StepProfile* profile_ = nullptr;
  uint64_t step_ = 0;
  Buffer<float> dequantised_;
};

// Adds a row of `tensors`: that tensor of that step.
void RecordTensor(uint64_t step,
                  std::string_view point,
                  std::string_view role,
                  MatrixSpan<float> values,
                  Telemetry& telemetry);

}  // namespace numsim
