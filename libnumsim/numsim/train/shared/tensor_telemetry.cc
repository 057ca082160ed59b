#include "numsim/train/shared/tensor_telemetry.h"

#include <cmath>
#include <string>

#include "numsim/formats/named_formats.h"
#include "numsim/ops/elementwise.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/train/stress.h"

namespace numsim {
namespace {

// What a format cannot hold becomes what it has for that (infinity or NaN), as in a framework that
// stores its tensors so.
std::optional<EncodePlan> StoragePlan(const Format& format) {
  if (format.spec == kFp32) return std::nullopt;
  return MakeEncodePlan(format.spec, {}, Overflow::kNonsaturate);
}

}  // namespace

TensorObserver::TensorObserver(const StorageConfig& storage, const StressConfig& stress)
    : activations_(StoragePlan(storage.activations)),
      gradients_(StoragePlan(storage.gradients)),
      stress_(stress) {}

void TensorObserver::Begin(uint64_t step, Telemetry* telemetry, StepProfile* profile) {
  step_ = step;
  telemetry_ = telemetry;
  profile_ = profile;
}

void TensorObserver::Tensor(std::string_view point, TensorRole role, MatrixRef<float> values) {
  const bool activation = role == TensorRole::kActivation;
  if (activation) PlantActivation(stress_, point, values);
  const auto& plan = activation ? activations_ : gradients_;
  if (plan) {
    const TimedPart timed(profile_, StepPart::kQuantise);
    RoundTo(*plan, values);
  }
  if (telemetry_ == nullptr) return;
  const TimedPart timed(profile_, StepPart::kTelemetry);
  RecordTensor(step_, point, activation ? "activation" : "gradient", values, *telemetry_);
}

void TensorObserver::Quantised(std::string_view layer,
                               LinearOperand operand,
                               const MatrixView& original,
                               const QuantizedMatrix& quantised) {
  if (telemetry_ == nullptr) return;
  StepProfile spent;
  {
    const TimedPart timed(&spent, StepPart::kTelemetry);
    const std::span<float> values =
        dequantised_.Resize(quantised.shape.rows, quantised.shape.cols).Span();
    const ErrorMeasures error = QuantizationError(original.values, quantised, values);
    telemetry_->Add("quantised",
                    {Cell(step_),
                     Cell(layer),
                     Cell(Name(operand)),
                     FormatText(quantised.format),
                     Cell(static_cast<double>(AmaxOfAll(original.values))),
                     Cell(error.UnderflowShare()),
                     Cell(error.OverflowShare()),
                     Cell(error.error_square / static_cast<double>(error.measured)),
                     Cell(error.SqnrDb())});
  }
  if (profile_ == nullptr) return;
  // The layer calls within its own timed step.
  (*profile_)[StepPart::kTelemetry] += spent[StepPart::kTelemetry];
  (*profile_)[StepPart::kQuantise] -= spent[StepPart::kTelemetry];
}

void RecordTensor(uint64_t step,
                  std::string_view point,
                  std::string_view role,
                  MatrixRef<float> values,
                  Telemetry& telemetry) {
  const AbsoluteStatistics measured = MeasureAbsolute(values);
  const size_t finite = values.Elements() - measured.nonfinite;
  telemetry.Add("tensors",
                {Cell(step),
                 Cell(point),
                 Cell(role),
                 Cell(measured.mean),
                 Cell(measured.max),
                 Cell(std::sqrt(measured.square_sum / static_cast<double>(finite))),
                 Cell(static_cast<uint64_t>(measured.nonfinite))});
}

}  // namespace numsim
