#include "experiments/fp8_outliers/plant.h"

#include <algorithm>
#include <cmath>

#include "experiments/shared/special_values.h"
#include "numsim/base/error.h"
#include "numsim/quantize/quantize.h"

namespace numsim::experiments::fp8_outliers {
namespace {

MatrixSpan<float> Weight(ParameterList<float>& parameters, const std::string& layer) {
  Parameter<float>* const parameter = parameters.Find(layer + ".weight");
  if (parameter == nullptr) throw Error::Format("the model has no layer '{}'", layer);
  return parameter->value.View();
}

// Returns the largest magnitude of a column, or of all columns.
double LargestOf(MatrixSpan<float> values, size_t first, size_t count) {
  double largest = 0;
  for (size_t row = 0; row < values.rows; ++row) {
    for (size_t j = first; j < first + count; ++j) {
      largest = std::max(largest, std::abs(static_cast<double>(values.Row(row)[j])));
    }
  }
  return largest;
}

double LargestGate(MatrixSpan<float> gate_up) {
  double largest = 0;
  for (size_t row = 0; row < gate_up.rows; ++row) {
    largest = std::max(largest, static_cast<double>(gate_up.Row(row)[0]));
  }
  return largest;
}

class MlpObserver final : public PassObserver<float> {
 public:
  explicit MlpObserver(const std::vector<std::string>& blocks) {
    for (const std::string& block : blocks) cleans.push_back({.block = block});
  }

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    if (role != TensorRole::kActivation) return;
    for (CleanMlp& clean : cleans) {
      if (point == clean.block + ".mlp.gate_up") clean.gate = LargestGate(values);
      if (point != clean.block + ".mlp.hidden") continue;
      clean.product = LargestOf(values, 0, values.cols);
      clean.channel = LargestOf(values, 0, 1);
    }
  }

  std::vector<CleanMlp> cleans;
};

}  // namespace

std::vector<CleanMlp> MeasureMlps(Trainer& trainer, const std::vector<std::string>& blocks) {
  Batch batch;
  trainer.NextBatch(batch);
  MlpObserver observer(blocks);
  Pass<float> pass;
  pass.seed = trainer.config().train.seed;
  pass.step = trainer.steps_taken();
  pass.observer = &observer;
  trainer.model().Forward(pass, batch);
  return observer.cleans;
}

void Watch::Begin(double size) {
  size_ = size;
  w3_input_ = {0, 0, kNaN, kNaN};
}

void Watch::Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) {
  if (size_ == 0 || role != TensorRole::kActivation) return;
  for (const CleanMlp& clean : blocks_) {
    if (point != clean.block + ".mlp.gate_up") continue;
    const auto value = static_cast<float>(std::sqrt(size_ * clean.product));
    values.Row(0)[0] += value;
    values.Row(0)[values.cols / 2] += value;
  }
}

void Watch::Quantized(std::string_view layer,
                      LinearOperand operand,
                      In<float> original,
                      const QuantizedMatrix& quantized) {
  if (operand != LinearOperand::kForwardX) return;
  const bool planted = std::ranges::any_of(
      blocks_, [&](const CleanMlp& clean) { return layer == clean.block + ".mlp.down"; });
  if (!planted) return;
  dequantized_.resize(original.Elements());
  const ErrorMeasures error = QuantizationError(original.Span(), quantized, dequantized_);
  // fmax and fmin take the number where the other is NaN.
  w3_input_ = {std::max(w3_input_.overflow, error.OverflowShare()),
               std::max(w3_input_.underflow, error.UnderflowShare()),
               std::fmax(w3_input_.absmax, static_cast<double>(AbsmaxOfAll(original.Span()))),
               std::fmin(w3_input_.sqnr, error.SqnrDb())};
}

GrowingWeights::GrowingWeights(CleanMlp clean, ParameterList<float>& parameters)
    : clean_(std::move(clean)) {
  const MatrixSpan<float> up = Weight(parameters, clean_.block + ".mlp.gate_up");
  const MatrixSpan<float> down = Weight(parameters, clean_.block + ".mlp.down");
  gate_.assign(up.Row(0), up.Row(0) + up.cols);
  for (size_t row = 0; row < down.rows; ++row) column_.push_back(down.Row(row)[0]);
}

void GrowingWeights::Impose(double factor, ParameterList<float>& parameters) const {
  const MatrixSpan<float> up = Weight(parameters, clean_.block + ".mlp.gate_up");
  const MatrixSpan<float> down = Weight(parameters, clean_.block + ".mlp.down");
  const double product = factor * clean_.product;
  const double gain = std::sqrt(product) / clean_.gate;
  for (size_t j = 0; j < up.cols; ++j) {
    const auto weight = static_cast<float>(gain * static_cast<double>(gate_[j]));
    up.Row(0)[j] = weight;          // the gate
    up.Row(down.cols)[j] = weight;  // the linear branch
  }
  for (size_t row = 0; row < down.rows; ++row) {
    down.Row(row)[0] =
        static_cast<float>(static_cast<double>(column_[row]) * clean_.channel / product);
  }
}

}  // namespace numsim::experiments::fp8_outliers
