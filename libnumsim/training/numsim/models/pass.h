// Settings and observers of a forward and backward pass through a model.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "numsim/backend/matrix.h"
#include "numsim/linear/linear.h"
#include "numsim/linear/step_profile.h"

namespace numsim {

// Whether a tensor of a pass belongs to the forward or to the backward pass.
enum class TensorRole : uint8_t {
  kActivation,  // a tensor of the forward pass
  kGradient,    // the gradient of that activation, in the backward pass
};

// Observes the tensors of a pass. Tensor names derive from layers: "blocks.3.attention.qkv" is the
// output of that layer, "blocks.3" the residual stream after the block, "embedding" the input of
// the first block, and "head" the logits. docs/training.md lists all names.
template <typename T>
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  // Receives a tensor that is complete and that nothing has read yet. The observer may change its
  // values in place, for example to simulate storage in a format or to inject an outlier.
  virtual void Tensor(std::string_view /*point*/, TensorRole /*role*/, MatrixSpan<T> /*values*/) {}
  // Receives the input of linear layer `layer`, before its forward GEMM.
  virtual void Input(std::string_view /*layer*/, MatrixSpan<const T> /*x*/) {}
  // Receives an operand that linear layer `layer` has quantised: the original values, and the codes
  // with their scales. The view describes the tensor as the caller stores it.
  virtual void Quantized(std::string_view /*layer*/,
                         LinearOperand /*operand*/,
                         In<float> /*original*/,
                         const QuantizedMatrix& /*quantised*/) {}
  // Called after linear layer `layer` has computed GEMM `product`. A first layer computes no input
  // gradient.
  virtual void Multiplied(std::string_view /*layer*/, LinearGemm /*product*/) {}
};

// The settings of one pass.
template <typename T>
struct Pass {
  // The random bits of the pass are a function of (seed, step) and the number of the layer.
  uint64_t seed = 0;
  uint64_t step = 0;
  double loss_scale = 1;  // factor of all gradients of a backward pass
  bool gradients = true;  // whether Backward follows Forward, under the same loss_scale
  bool training = false;  // whether patches are dropped (ModelConfig::patch_dropout)
  // Whether delayed scales are updated at the end of the pass. Of a batch in parts, each part records
  // its maxima, and the last one updates the scales.
  bool updates_scales = true;
  PassObserver<T>* observer = nullptr;
  StepProfile* profile = nullptr;  // receives the time spent in each phase

  // Shows the tensor to the observer, if there is one.
  void Observe(std::string_view point, TensorRole role, MatrixSpan<T> values) const {
    if (observer != nullptr) observer->Tensor(point, role, values);
  }
};

}  // namespace numsim
