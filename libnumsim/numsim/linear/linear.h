// A linear layer without bias: its forward and backward pass in the precision of a recipe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "numsim/linear/delayed_scales.h"
#include "numsim/linear/linear_operand.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/streams.h"

namespace numsim {

// The sizes of a linear layer, with their symbols in [SwitchBack].
struct LinearShape {
  size_t tokens = 0;  // batch times sequence length: b
  size_t in = 0;      // n
  size_t out = 0;     // m
};

// A tensor saved for backward: codes with scales, or float32 values, either owned or the caller's.
struct SavedMatrix {
  std::string name;    // "X", "W"
  std::string format;  // format in which the tensor is stored
  std::variant<QuantizedMatrix, std::vector<float>, MatrixView> data;
  bool scaled = false;  // data has scales; otherwise its scales are 1 and not counted

  // Returns the size: one or two bytes per code and four per scale, or four per float32 value.
  size_t Bytes() const;
};

// The tensors that one Forward saves for its Backward.
struct LinearSaved {
  LinearShape shape;
  std::vector<SavedMatrix> matrices;  // X, then W if it is saved
  std::vector<float> channels;        // those of Forward

  size_t Bytes() const;
};

// The operations of a layer, for timing them and for observing what is quantised.
enum class LinearOp : uint8_t {
  kQuantizeX,  // for the forward GEMM
  kQuantizeW,
  kForwardProduct,  // with dequantisation when results are stored
  kQuantizeG,       // for the input gradient
  kQuantizeWTransposed,
  kInputGradientProduct,
  kQuantizeGTransposed,  // for the weight gradient
  kQuantizeXTransposed,
  kWeightGradientProduct,
  kDequantizeX,  // dequantises saved codes and rounds to high precision
  kKeepX,        // saves X for backward, unless the codes of the forward GEMM are saved
};
// Returns "quantize X", "forward product", ...
std::string_view ToString(LinearOp step);

// Observes every operation that is actually performed. A tensor that is quantised once and used
// twice gives one pair of calls, at its first use. An fp32 operand in high precision is used as it
// is, without an operation; saving X for backward is an operation even then.
class LinearObserver {
 public:
  virtual ~LinearObserver() = default;
  virtual void Begin(LinearOp step) = 0;
  virtual void End(LinearOp step) = 0;
  // Receives a tensor that was quantised as the given operand, and the result. `original` is the
  // caller's matrix, not transposed. Called between Begin and End.
  virtual void Quantised(LinearOperand /*operand*/,
                         const MatrixView& /*original*/,
                         const QuantizedMatrix& /*result*/) {}
};

// Memory reused by later calls. Its content between calls has no meaning.
struct LinearWorkspace {
  OperandData operands[6];      // indexed by LinearOperand
  OperandData saved_x;          // X in the saved format, if no operand has that format
  std::vector<float> values;    // the dequantised X
  std::vector<float> rescaled;  // X times its channels
};

// One linear layer. It holds the recipe, the state of delayed scaling and reusable memory; the
// caller owns the weights and the tensors saved for backward.
class Linear {
 public:
  // Requires a recipe from MakeLinearRecipe, or one that satisfies the rules stated at LinearSaves
  // and in which either all or none of the quantised operands use delayed scaling. With delayed
  // scaling, both operands of G must have the same recipe. Throws Error otherwise.
  explicit Linear(LinearRecipe recipe);

  const LinearRecipe& recipe() const { return recipe_; }

  // Computes y = x w^T and fills `saved` for Backward. With delayed scaling, updates the scales of
  // the forward operands at the end. If `x_stays`, the caller leaves x unchanged until Backward; an x that is
  // saved in fp32 is then not copied.
  // Random bits: operand o (0 to 5, in the order of LinearOperand) uses stream 8 * random.stream +
  // o at the index of the element in the tensor as it is passed. A tensor that is quantised once
  // and used twice uses the random bits of its first use.
  // With `channels` (in elements, powers of two), computes y = x diag(channels) w^T: x is quantised,
  // then its columns are multiplied by the channels, which is exact unless a float32 over- or
  // underflows. dw is then that of x diag(channels), and dx is the gradient of x diag(channels),
  // not of x.
  // Requires x: tokens x in, w: out x in, y: tokens x out, row-major, no overlap. Throws Error if a
  // size differs.
  // NaN and infinities: quantised operands follow QuantizedMatrix, and GEMMs follow their
  // accumulation mode. Dimensions may be 0; an empty sum is +0.
  void Forward(std::span<const float> x,
               std::span<const float> w,
               LinearShape shape,
               std::span<float> y,
               LinearSaved& saved,
               RandomStream random = {},
               LinearObserver* observer = nullptr,
               bool x_stays = false,
               std::span<const float> channels = {});

  // Computes dx = g w and dw = g^T x from the gradient g (tokens x out) of y. An empty dx or dw is
  // not computed. `w` must be that of Forward; it is not read under LinearSaves::kQuantized, nor
  // for dw. With delayed scaling, updates at the end the scales of G and of what else was quantised.
  // Requires `saved` as a Forward with this recipe left it, and spans of its shape. Throws Error if a
  // size differs.
  void Backward(std::span<const float> g,
                std::span<const float> w,
                const LinearSaved& saved,
                std::span<float> dx,
                std::span<float> dw,
                RandomStream random = {},
                LinearObserver* observer = nullptr);

  // SaveState returns the state of delayed scaling: X, W and G one after another, then W and X of
  // the backward GEMMs if they are quantised anew, or nothing without delayed scaling. RestoreState
  // throws Error if the state does not fit this recipe, and then changes nothing.
  std::vector<float> SaveState() const;
  void RestoreState(std::span<const float> state);

 private:
  LinearRecipe recipe_;
  DelayedScales delayed_;
  LinearWorkspace workspace_;
};

}  // namespace numsim
