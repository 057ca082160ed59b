// One call of Linear::Forward or Linear::Backward: its operations, each reported to the observer.
#pragma once

#include <span>
#include <vector>

#include "numsim/linear/linear.h"
#include "numsim/linear/linear_operand.h"

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
             DelayedScales& delayed,
             LinearWorkspace& workspace,
             RandomStream random,
             LinearObserver* observer)
      : recipe_(recipe),
        delayed_(delayed),
        workspace_(workspace),
        random_(random),
        observer_(observer) {}

  // Returns the tensor, converted to the given operand, in the workspace.
  OperandData& Make(LinearOperand operand, const MatrixView& tensor);

  // Returns the operand X of the forward GEMM with its columns multiplied by `channels`. The view is
  // valid until the next call.
  MatrixView Rescaled(const OperandData& x, LinearShape shape, std::span<const float> channels);

  void Multiply(LinearGemm product,
                const GemmOperand& a,
                const GemmOperand& b,
                std::span<float> out);

  // Saves what Backward needs of x and w in saved.matrices. May move the operands of the forward
  // GEMM out of the workspace.
  void SaveForBackward(const MatrixView& x, bool x_stays, LinearSaved& saved);

  // Computes dx = g w. Returns the operand G.
  OperandData& InputGradient(const MatrixView& g,
                             const MatrixView& w,
                             const LinearSaved& saved,
                             std::span<float> dx);

  // Computes dw = g^T x. `input_gradient_g` is the operand G of the input gradient, or null if that
  // was not computed.
  void WeightGradient(const MatrixView& g,
                      const OperandData* input_gradient_g,
                      const LinearSaved& saved,
                      std::span<float> dw);

 private:
  OperandData& MakeWithinStep(LinearOperand operand, const MatrixView& tensor);

  // Returns the recipe of the X that Forward saves.
  OperandRecipe SavedRecipe() const;

  // Returns the operand X^T from an X that was saved in another precision.
  OperandData& RemakeX(const SavedMatrix& saved, MatrixShape shape);

  const LinearRecipe& recipe_;
  DelayedScales& delayed_;
  LinearWorkspace& workspace_;
  RandomStream random_;
  LinearObserver* observer_;
};

}  // namespace numsim
