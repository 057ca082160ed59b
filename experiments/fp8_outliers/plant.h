// Outliers of SwiGLU that are planted in the training of a llama, in channel 0 of some blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/fp8_outliers/fp8_outliers.h"
#include "numsim/models/pass.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::fp8_outliers {

// The magnitudes of a clean model in a block.
struct CleanMlp {
  std::string block;   // "blocks.1"
  double product = 0;  // largest magnitude of SwiGLU's output
  double gate = 0;     // largest value of the gate of channel 0
  double channel = 0;  // largest magnitude of the output of channel 0
};
// Measures the blocks on the next batch.
std::vector<CleanMlp> MeasureMlps(Trainer& trainer, const std::vector<std::string>& blocks);

// The quantisers of the inputs of w3 in one step: the worst of the planted blocks.
struct W3Input {
  double overflow = 0, underflow = 0, absmax, sqnr;  // as in trace.csv
};

// Watches a training pass: adds the outlier of kOnce and kEvery to the gate and the linear branch
// of channel 0 for the first token, so that SwiGLU is about its square, and reads the quantiser.
class Watch final : public PassObserver<float> {
 public:
  explicit Watch(std::vector<CleanMlp> blocks) : blocks_(std::move(blocks)) {}

  // For the next step: SwiGLU is to be this many times as large as in the clean model; 0: no
  // outlier.
  void Begin(double size);
  const W3Input& w3_input() const { return w3_input_; }

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override;
  void Quantized(std::string_view layer,
                 LinearOperand operand,
                 In<float> original,
                 const QuantizedMatrix& quantized) override;

 private:
  std::vector<CleanMlp> blocks_;
  double size_ = 0;
  W3Input w3_input_ = {};
  std::vector<float> dequantized_;
};

// The weights of channel 0 of a block under kWeights: w1 = w2 along the clean w2, and a column of
// w3 that shrinks as the product grows, so that the channel adds as much to the output as before.
class GrowingWeights {
 public:
  // Takes the weights of the clean model.
  GrowingWeights(CleanMlp clean, ParameterList<float>& parameters);
  // Writes the weights for products `factor` times as large as the clean model's largest.
  void Impose(double factor, ParameterList<float>& parameters) const;

 private:
  CleanMlp clean_;
  std::vector<float> gate_, column_;
};

}  // namespace numsim::experiments::fp8_outliers
