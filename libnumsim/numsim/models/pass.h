// What a forward and backward pass through a model takes along.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "numsim/linear/linear.h"
#include "numsim/linear/step_profile.h"
#include "numsim/ops/tensor.h"

namespace numsim {

enum class TensorRole : uint8_t {
  kActivation,  // in a forward pass
  kGradient,    // of that activation, in the backward pass
};

// Sees the tensors of a pass. Points are named by layers: "blocks.3.attention.qkv" is what that
// layer puts out, "blocks.3" the residual stream behind the block, "embedding" what enters the
// first block, "head" the logits. docs/training.md lists them.
template <typename T>
class PassObserver {
 public:
  virtual ~PassObserver() = default;
  // A tensor that is complete and that nothing has read yet: its values may be changed in place
  // (storage in a format, a planted outlier).
  virtual void Tensor(std::string_view /*point*/, TensorRole /*role*/, MatrixSpan<T> /*values*/) {}
  // An operand that linear layer `layer` quantised: what it was, and codes with scales. The view is
  // of the tensor as the caller stores it.
  virtual void Quantised(std::string_view /*layer*/,
                         LinearOperand /*operand*/,
                         const MatrixView& /*original*/,
                         const QuantizedMatrix& /*quantised*/) {}
  // Linear layer `layer` has computed that product. A first layer has no input gradient.
  virtual void Multiplied(std::string_view /*layer*/, LinearGemm /*product*/) {}
};

template <typename T>
struct Pass {
  // Random draws of the pass are functions of (seed, step) and of the layer's number.
  uint64_t seed = 0;
  uint64_t step = 0;
  double loss_scale = 1;  // factor of the gradients of a backward pass
  PassObserver<T>* observer = nullptr;
  StepProfile* profile = nullptr;  // receives the times of operations

  void Observe(std::string_view point, TensorRole role, MatrixSpan<T> values) const {
    if (observer != nullptr) observer->Tensor(point, role, values);
  }
};

}  // namespace numsim
