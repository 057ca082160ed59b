// The MLP of a transformer block, forward and backward.
#pragma once

#include <string>

#include "numsim/models/internal/gated_activation.h"
#include "numsim/models/internal/linear_factory.h"

namespace numsim {

struct MlpOptions {
  MlpKind kind = MlpKind::kSwiglu;
  size_t width = 0, hidden = 0;
  size_t rows = 0;  // maximum number of rows of x per example
  bool biases = false;
  Initial up{}, down{};  // `up` also applies to the gate
};

// Scratch memory for gradients, used only within one Backward. Layers of the same shape may share
// it.
template <typename T>
struct MlpScratch {
  explicit MlpScratch(Place place) : hidden(place), up(place), output(place) {}
  Buffer<T> hidden, up, output;
};

// The MLP. Its linear layers are NAME.up for kGelu (width -> hidden) or else NAME.gate_up (width ->
// 2 hidden, the gate's columns first), and NAME.down (hidden -> width). The tensor names are those
// of these layers, and NAME.hidden for the output of the activation function, with the scales of a
// smooth kind; NAME.down is that layer's output, which kSmoothSwigluToken then multiplies.
template <typename T>
class MlpLayer {
 public:
  MlpLayer(LinearFactory<T>& linears, const std::string& name, const MlpOptions& options);

  // Computes y. x and y are rows x width, contiguous, and do not overlap. The caller must leave x
  // unchanged until Backward.
  void Forward(const Pass<T>& pass, In<T> x, MatrixSpan<T> y);
  // Writes dx and the gradients of the parameters. dx must not overlap g. An observer may change g.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx, MlpScratch<T>& scratch);

 private:
  std::string hidden_name_;
  MlpOptions options_;
  LinearLayer<T>& up_;
  LinearLayer<T>& down_;
  GatedActivation<T> gated_;  // unless kGelu
  Buffer<T> up_output_, hidden_;
};

}  // namespace numsim
