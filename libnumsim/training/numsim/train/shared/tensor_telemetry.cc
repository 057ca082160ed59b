#include "numsim/train/shared/tensor_telemetry.h"

#include <cmath>
#include <string>

#include "numsim/formats/named_formats.h"
#include "numsim/ops/elementwise.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/train/stress.h"

namespace numsim {
namespace {

// Returns the encode plan for a storage format; none for fp32. Values beyond the format's range
// become infinity or NaN, as in a framework that stores its tensors in that format.
std::optional<EncodePlan> StoragePlan(const Format& format) {
  if (format.spec == kFp32) return std::nullopt;
  return MakeEncodePlan(format.spec, {}, Overflow::kNonsaturate);
}

}  // namespace

TensorObserver::TensorObserver(const StorageConfig& storage, const StressConfig& stress)
    : activations_(StoragePlan(storage.activations)),
      gradients_(StoragePlan(storage.gradients)),
      stress_(stress) {}

void TensorObserver::Begin(uint64_t step,
                           Telemetry* telemetry,
                           StepProfile* profile,
                           PassObserver<float>* guest) {
  step_ = step;
  telemetry_ = telemetry;
  profile_ = profile;
  guest_ = guest;
}

void TensorObserver::Input(std::string_view layer, MatrixSpan<const float> x) {
  if (guest_ != nullptr) guest_->Input(layer, x);
}

void TensorObserver::Multiplied(std::string_view layer, LinearGemm product) {
  if (guest_ != nullptr) guest_->Multiplied(layer, product);
}

void TensorObserver::Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) {
  const bool activation = role == TensorRole::kActivation;
  if (activation) PlantActivation(stress_, point, values);
  if (guest_ != nullptr) guest_->Tensor(point, role, values);
  const auto& plan = activation ? activations_ : gradients_;
  if (plan) {
    const TimedPart timed(profile_, StepPhase::kQuantize);
    RoundTo(*plan, values);
  }
  if (telemetry_ == nullptr) return;
  const TimedPart timed(profile_, StepPhase::kTelemetry);
  RecordTensor(step_, point, activation ? "activation" : "gradient", values, *telemetry_);
}

void TensorObserver::Quantized(std::string_view layer,
                               LinearOperand operand,
                               In<float> original,
                               const QuantizedMatrix& quantized) {
  if (guest_ != nullptr) guest_->Quantized(layer, operand, original, quantized);
  if (telemetry_ == nullptr) return;
  StepProfile spent;
  {
    const TimedPart timed(&spent, StepPhase::kTelemetry);
    const std::span<float> values =
        dequantized_.Resize(quantized.shape.rows, quantized.shape.cols).Span();
    const ErrorMeasures error = QuantizationError(original.Span(), quantized, values);
    telemetry_->Add("quantised",
                    {step_,
                     layer,
                     ToString(operand),
                     ToString(quantized.format),
                     static_cast<double>(AbsmaxOfAll(original.Span())),
                     error.UnderflowShare(),
                     error.OverflowShare(),
                     error.error_square / static_cast<double>(error.measured),
                     error.SqnrDb()});
  }
  if (profile_ == nullptr) return;
  // The layer calls this while its own kQuantize phase is being timed.
  (*profile_)[StepPhase::kTelemetry] += spent[StepPhase::kTelemetry];
  (*profile_)[StepPhase::kQuantize] -= spent[StepPhase::kTelemetry];
}

void RecordTensor(uint64_t step,
                  std::string_view point,
                  std::string_view role,
                  MatrixSpan<float> values,
                  Telemetry& telemetry) {
  const AbsoluteStatistics measured = MeasureAbsolute(values);
  const size_t finite = values.Elements() - measured.nonfinite;
  telemetry.Add("tensors",
                {step,
                 point,
                 role,
                 measured.mean,
                 measured.max,
                 std::sqrt(measured.square_sum / static_cast<double>(finite)),
                 static_cast<uint64_t>(measured.nonfinite)});
}

}  // namespace numsim
