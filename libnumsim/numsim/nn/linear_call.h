// One call of Linear::Forward or Linear::Backward: its operations, each seen by the observer.
#pragma once

#include <span>
#include <vector>

#include "numsim/nn/linear.h"
#include "numsim/nn/linear_operand.h"

namespace numsim {

// The six operands, numbered as products follow each other. The number is that of the random draws.
enum class LinearOperand : uint8_t {
  kForwardX,
  kForwardW,
  kInputGradientG,
  kInputGradientW,
  kWeightGradientG,
  kWeightGradientX,
};

// Tells an observer of a step for as long as it lives. No observer: does nothing.
class StepScope {
 public:
  StepScope(LinearObserver* observer, LinearStep step) : observer_(observer), step_(step) {
    if (observer_ != nullptr) observer_->Begin(step_);
  }
  ~StepScope() {
    if (observer_ != nullptr) observer_->End(step_);
  }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  LinearObserver* observer_;
  LinearStep step_;
};

class LinearCall {
 public:
  // `delayed`: the scales of X, W and G, or none. All arguments must outlive the call.
  LinearCall(const LinearRecipe& recipe,
             std::span<DelayedScale> delayed,
             RandomStream random,
             LinearObserver* observer)
      : recipe_(recipe), delayed_(delayed), random_(random), observer_(observer) {}

  const OperandRecipe& Recipe(LinearOperand operand) const;

  // The tensor as that operand of its product.
  OperandData Make(LinearOperand operand, const MatrixView& tensor);

  void Multiply(Product product, const GemmOperand& a, const GemmOperand& b, std::span<float> out);

  // What Backward needs of x and w, whose operands of the forward product are given up.
  std::vector<KeptMatrix> Keep(const MatrixView& x, OperandData x_operand, OperandData w_operand);

  // dx = g w. Returns the operand G.
  OperandData InputGradient(const MatrixView& g,
                            const MatrixView& w,
                            const LinearKept& kept,
                            std::span<float> dx);

  // dw = g^T x. input_gradient_g: G of the input gradient, or null where that was not computed.
  void WeightGradient(const MatrixView& g,
                      const OperandData* input_gradient_g,
                      const LinearKept& kept,
                      std::span<float> dw);

 private:
  OperandData MakeWithinStep(LinearOperand operand, const MatrixView& tensor);

  // The recipe under which Forward made the X that it keeps.
  OperandRecipe KeptRecipe() const;

  // X^T from what was kept otherwise: dequantised into `values`, which the result may view.
  OperandData RemakeX(const KeptMatrix& kept, MatrixShape shape, std::vector<float>& values);

  const LinearRecipe& recipe_;
  std::span<DelayedScale> delayed_;
  RandomStream random_;
  LinearObserver* observer_;
};

}  // namespace numsim
