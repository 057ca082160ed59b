// A linear layer without bias, forward and backward explicit, in the precisions of a recipe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "numsim/linear/linear_operand.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/streams.h"

namespace numsim {

struct LinearShape {
  size_t tokens = 0;  // batch times sequence length: b of [SwitchBack]
  size_t in = 0;      // n
  size_t out = 0;     // m
};

// A matrix that Forward keeps: codes with scales, or float32 values, its own or the caller's.
struct SavedMatrix {
  std::string name;    // "X", "W"
  std::string format;  // of what is stored
  std::variant<QuantizedMatrix, std::vector<float>, MatrixView> data;
  bool scaled = false;  // codes with scales; without, those of `data` are 1 and cost nothing

  // Codes, one or two bytes each, and scales, four; or float32 values.
  size_t Bytes() const;
};

// What one Forward leaves for its Backward.
struct LinearSaved {
  LinearShape shape;
  std::vector<SavedMatrix> matrices;  // X, then W if it is kept

  size_t Bytes() const;
};

// The operations of a layer, for timing and for observing what was quantised.
enum class LinearOp : uint8_t {
  kQuantizeX,  // of the forward product
  kQuantizeW,
  kForwardProduct,  // dequantised in the store
  kQuantizeG,       // of the input gradient
  kQuantizeWTransposed,
  kInputGradientProduct,
  kQuantizeGTransposed,  // of the weight gradient
  kQuantizeXTransposed,
  kWeightGradientProduct,
  kDequantizeX,  // of kept codes, and rounded to high precision
  kKeepX,        // rounding X to what is kept, where the forward product did not take that
};
// "quantize X", "forward product", ...
std::string_view ToString(LinearOp step);

// Called around every operation that is really done: a tensor that is quantised once and used twice
// gives one pair of calls, that of its first use. An operand in fp32 high precision is taken as it
// is, without a step; keeping X is one.
class LinearObserver {
 public:
  virtual ~LinearObserver() = default;
  virtual void Begin(LinearOp step) = 0;
  virtual void End(LinearOp step) = 0;
  // A tensor that was cast to codes as that operand, and the result. The matrix is that of the
  // caller, not transposed. Called within the step.
  virtual void Quantised(LinearOperand /*operand*/,
                         const MatrixView& /*original*/,
                         const QuantizedMatrix& /*result*/) {}
};

// Memory that calls use again; what it holds between them means nothing.
struct LinearWorkspace {
  OperandData operands[6];    // by LinearOperand
  OperandData saved_x;        // in high precision, where no operand is that
  std::vector<float> values;  // of X, dequantised
};

class Linear {
 public:
  // Requires a recipe of MakeLinearRecipe, or one that keeps the rules of LinearSaves, with delayed
  // operands all or none, and under delayed scaling kQuantized and one recipe for each tensor.
  explicit Linear(LinearRecipe recipe);

  const LinearRecipe& recipe() const { return recipe_; }

  // y = x w^T. With delayed scaling the scales of X and W are updated at the end.
  // Stochastic draws of operand o (X W, G W^T, G^T X^T are 0 to 5) are those of stream
  // 8 * random.stream + o, by the index of the element in the tensor as it is given; a tensor that
  // is quantised once and used twice draws as its first use.
  // Requires x: tokens x in, w: out x in, y: tokens x out, row-major, no overlap.
  // NaN and infinities: the rule of QuantizedMatrix for quantised operands, that of the accumulator
  // for the products. Empty dimensions are allowed; an empty sum is +0.
  void Forward(std::span<const float> x,
               std::span<const float> w,
               LinearShape shape,
               std::span<float> y,
               LinearSaved& saved,
               RandomStream random = {},
               LinearObserver* observer = nullptr,
               bool x_stays = false);

  // dx = g w and dw = g^T x from the gradient g (tokens x out) of y. w is that of Forward; it is
  // not read under LinearSaves::kQuantized, nor for dw. An empty dx or dw is not computed. With
  // delayed scaling the scale of G is updated at the end. Requires kept as a Forward of this recipe
  // left it, and spans of its shape.
  void Backward(std::span<const float> g,
                std::span<const float> w,
                const LinearSaved& saved,
                std::span<float> dx,
                std::span<float> dw,
                RandomStream random = {},
                LinearObserver* observer = nullptr);

  // The state of delayed scaling, X, W and G one after another; empty without. Restore throws Error
  // when the state is not that of this recipe, and then changes nothing.
  std::vector<float> SaveState() const;
  void RestoreState(std::span<const float> state);

 private:
  LinearRecipe recipe_;
  std::vector<DelayedScale> delayed_;  // X, W, G; empty without delayed scaling
  LinearWorkspace workspace_;
};

}  // namespace numsim
