// One call of Linear::Forward or Linear::Backward: its operations, each reported to the observer.
#pragma once

#include <span>

#include "numsim/linear/internal/linear_operand.h"
#include "numsim/linear/internal/linear_workspace.h"
#include "numsim/linear/linear.h"

namespace numsim {

// Reports the begin and end of an operation to the observer, at construction and destruction. Does
// nothing without an observer.
class StepScope {
 public:
  StepScope(LinearObserver* observer, LinearOp step) : observer_(observer), step_(step) {
    if (observer_ != nullptr) observer_->Begin(step_);
  }
  ~StepScope() {
    if (observer_ != nullptr) observer_->End(step_);
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  LinearObserver* observer_;
  LinearOp step_;
};

// Multiplies column j of a row-major matrix by channels[j].
void ScaleColumns(std::span<const float> channels, std::span<float> matrix);

// The operations of one call.
class LinearCall {
 public:
  // All arguments must outlive this object.
  LinearCall(const LinearRecipe& recipe,
             Place place,
             DelayedScales& delayed,
             LinearWorkspace& workspace,
             RandomStream random,
             LinearObserver* observer)
      : recipe_(recipe),
        place_(place),
        delayed_(delayed),
        workspace_(workspace),
        random_(random),
        observer_(observer) {}

  // Computes y = x w^T under saved.channels, and saves what Backward needs of x and w. Requires
  // a prepared `saved` (linear_saved.h).
  void Forward(ConstFloatSpan x, ConstFloatSpan w, FloatSpan y, LinearSaved& saved);

  // Computes dx = g w and dw = g^T x; either one only if it has data.
  void Backward(
      ConstFloatSpan g, ConstFloatSpan w, const LinearSaved& saved, FloatSpan dx, FloatSpan dw);

 private:
  // Converts the tensor to the given operand, with codes in the workspace or, if it is not null, in
  // `memory`. `rows` and `columns` say which vectors of it GEMMs will read.
  LinearTensor Make(LinearOperand operand,
                    ConstFloatSpan tensor,
                    bool rows,
                    bool columns,
                    QuantizedMatrix* memory = nullptr);
  LinearTensor MakeWithinStep(LinearOperand operand,
                              ConstFloatSpan tensor,
                              CodeOrder order,
                              QuantizedMatrix* memory = nullptr);

  // Returns the operand X of the forward GEMM with its columns multiplied by `channels`. The view
  // is valid until the next call.
  MatrixSpan<const float> Rescaled(const LinearTensor& x, std::span<const float> channels);

  void Multiply(LinearGemm product,
                const LinearTensor& a,
                bool a_transposed,
                const LinearTensor& b,
                bool b_transposed,
                FloatSpan out);

  // Saves X as values, or in high precision.
  void SaveX(ConstFloatSpan x, SavedMatrix& saved);

  RandomStream RandomOf(LinearOperand operand) const {
    return {random_.seed, 8 * random_.stream + static_cast<size_t>(operand)};
  }

  // Returns the operand W^T of the input gradient.
  LinearTensor MakeBackwardW(ConstFloatSpan w);

  // Returns the operand X^T from an X that was saved in another precision.
  LinearTensor RemakeX(const LinearSaved& saved);

  const LinearRecipe& recipe_;
  Place place_;
  DelayedScales& delayed_;
  LinearWorkspace& workspace_;
  RandomStream random_;
  LinearObserver* observer_;
};

}  // namespace numsim
