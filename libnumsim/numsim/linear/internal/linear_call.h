// One call of Linear::Forward or Linear::Backward: its operations, each seen by the observer.
#pragma once

#include <span>
#include <vector>

#include "numsim/linear/linear.h"
#include "numsim/linear/linear_operand.h"

namespace numsim {

// Tells an observer of a step for as long as it lives. No observer: does nothing.
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

class LinearCall {
 public:
  // `delayed`: the scales of X, W and G, or none. All arguments must outlive the call.
  LinearCall(const LinearRecipe& recipe,
             std::span<DelayedScale> delayed,
             LinearWorkspace& workspace,
             RandomStream random,
             LinearObserver* observer)
      : recipe_(recipe),
        delayed_(delayed),
        workspace_(workspace),
        random_(random),
        observer_(observer) {}

  const OperandRecipe& Recipe(LinearOperand operand) const;

  // The tensor as that operand of its product, in the workspace.
  OperandData& Make(LinearOperand operand, const MatrixView& tensor);

  void Multiply(LinearGemm product,
                const GemmOperand& a,
                const GemmOperand& b,
                std::span<float> out);

  // Leaves in kept.matrices what Backward needs of x and w. Takes the operands of the forward
  // product out of the workspace.
  void SaveForBackward(const MatrixView& x, bool x_stays, LinearSaved& saved);

  // dx = g w. Returns the operand G.
  OperandData& InputGradient(const MatrixView& g,
                             const MatrixView& w,
                             const LinearSaved& saved,
                             std::span<float> dx);

  // dw = g^T x. input_gradient_g: G of the input gradient, or null where that was not computed.
  void WeightGradient(const MatrixView& g,
                      const OperandData* input_gradient_g,
                      const LinearSaved& saved,
                      std::span<float> dw);

 private:
  OperandData& MakeWithinStep(LinearOperand operand, const MatrixView& tensor);

  // The recipe under which Forward made the X that it keeps.
  OperandRecipe SavedRecipe() const;

  // X^T from what was kept otherwise.
  OperandData& RemakeX(const SavedMatrix& saved, MatrixShape shape);

  const LinearRecipe& recipe_;
  std::span<DelayedScale> delayed_;
  LinearWorkspace& workspace_;
  RandomStream random_;
  LinearObserver* observer_;
};

}  // namespace numsim
