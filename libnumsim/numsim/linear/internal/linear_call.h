// One call of Linear::Forward or Linear::Backward: its operations, each reported to the observer.
#pragma once

#include <span>

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

  // Computes y = x w^T under saved.channels, and saves what Backward needs of x and w.
  void Forward(In<float> x, In<float> w, MatrixSpan<float> y, bool x_stays, LinearSaved& saved);

  // Computes dx = g w and dw = g^T x; either one only if it has data.
  void Backward(In<float> g,
                In<float> w,
                const LinearSaved& saved,
                MatrixSpan<float> dx,
                MatrixSpan<float> dw);

 private:
  // Converts the tensor to the given operand, in the workspace. `rows` and `columns` say which
  // vectors of it GEMMs will read.
  OperandData& Make(LinearOperand operand, In<float> tensor, bool rows, bool columns);
  OperandData& MakeWithinStep(LinearOperand operand, In<float> tensor, CodeOrder order);

  // Returns the order in which to store codes. Tensor cores read vectors of 8-bit codes that are
  // contiguous; the CPU reads any order.
  CodeOrder OrderFor(LinearOperand operand, bool rows, bool columns) const;

  // Returns true if Backward uses the codes of the forward GEMM: because nothing else is saved, or
  // because quantising what is saved would give the same codes.
  bool KeepsCodes(Element element) const;

  // Returns the operand X of the forward GEMM with its columns multiplied by `channels`. The view
  // is valid until the next call.
  MatrixSpan<const float> Rescaled(const OperandData& x, std::span<const float> channels);

  void Multiply(LinearGemm product,
                const OperandView& a,
                bool a_transposed,
                const OperandView& b,
                bool b_transposed,
                MatrixSpan<float> out);

  void SaveForBackward(In<float> x, bool x_stays, LinearSaved& saved);

  // Returns the recipe of the X that Forward saves.
  OperandRecipe SavedRecipe(const LinearSaved& saved) const;

  // Returns the operand X^T from an X that was saved in another precision.
  OperandData& RemakeX(const LinearSaved& saved);

  const LinearRecipe& recipe_;
  Place place_;
  DelayedScales& delayed_;
  LinearWorkspace& workspace_;
  RandomStream random_;
  LinearObserver* observer_;
};

}  // namespace numsim
