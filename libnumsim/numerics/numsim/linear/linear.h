// A linear layer without bias: its forward and backward pass in the precision of a recipe, on the
// host or on a device. Both give the same bits where the accumulation modes are the same and have
// bits at all (not library).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/linear/delayed_scales.h"
#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/random/streams.h"

namespace numsim {

// The sizes of a linear layer, with their symbols in [SwitchBack].
struct LinearShape {
  size_t tokens = 0;  // batch times sequence length: b
  size_t in = 0;      // n
  size_t out = 0;     // m

  // The shapes of the matrices.
  MatrixShape X() const { return {tokens, in}; }
  MatrixShape W() const { return {out, in}; }
  MatrixShape Y() const { return {tokens, out}; }
};

// The form in which a tensor is saved for backward.
enum class SavedKind : uint8_t {
  kCodes,   // codes with scales
  kValues,  // a copy of the values
  kView,    // the caller's values, which stay unchanged
};

// A tensor saved for backward.
struct SavedMatrix {
  std::string name;     // "X", "W"
  std::string format;   // format in which the tensor is stored
  bool scaled = false;  // the codes have scales; otherwise these are 1 and not counted
  SavedKind kind = SavedKind::kCodes;
  QuantizedMatrix codes;
  FloatBuffer values;
  ConstFloatSpan view;

  // Returns the values of kinds kValues and kView.
  ConstFloatSpan Values() const { return kind == SavedKind::kView ? view : values.View(); }
  // Returns the size: one or two bytes per code and four per scale, or those of the values.
  size_t Bytes() const;
};

// The tensors that one Forward saves for its Backward.
struct LinearSaved {
  LinearShape shape;
  std::vector<SavedMatrix> matrices;  // X, then W if it is saved
  bool keeps_codes = false;           // Backward uses the codes of the forward GEMM
  std::vector<float> channels;        // those of Forward

  // Returns the bytes of all saved matrices.
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
  kSaveX,        // saves X for backward, unless the codes of the forward GEMM are saved
};
// Returns "quantize X", "forward product", ...
std::string_view ToString(LinearOp op);

// Observes every operation that is actually performed. A tensor that is quantised once and used
// twice gives one pair of calls, at its first use. An operand in fp32, or in bf16 if the tensor is
// stored as bf16, is the caller's tensor itself and takes no operation. Copying X for backward is an
// operation even then, unless the caller's X stays. On a device, calls come when work is enqueued,
// not when it runs.
class LinearObserver {
 public:
  virtual ~LinearObserver() = default;
  // Called before and after an operation.
  virtual void Begin(LinearOp op) = 0;
  virtual void End(LinearOp op) = 0;
  // Receives a tensor that was quantised as the given operand, and the result. `original` is the
  // caller's matrix, not transposed, or its Hadamard transform, rounded. Called between Begin and End.
  virtual void Quantized(LinearOperand /*operand*/,
                         ConstFloatSpan /*original*/,
                         const QuantizedMatrix& /*result*/) {}
};

// One linear layer. It holds the recipe and the state of delayed scaling; the caller owns the weights
// and the tensors saved for backward. Working memory is shared by all layers: that of a context on a
// device, that of a thread on the host.
class Linear {
 public:
  // Requires a recipe from MakeLinearRecipe, or one that satisfies the rules stated at LinearSaves
  // and at GemmRecipe::container, and in which either all or none of the quantised operands use
  // delayed scaling. With delayed scaling, both operands of G must have the same recipe. Throws
  // Error otherwise. For a device also throws Error as CheckOnDevice (linear_recipe.h) does, and if
  // this device cannot compute one of the GEMMs.
  explicit Linear(LinearRecipe recipe, Place place = {});

  // The recipe of the layer and the place where it computes.
  const LinearRecipe& recipe() const { return recipe_; }
  Place place() const { return place_; }

  // Returns the bytes of memory that Forward fills for each of the matrices that it saves, given the
  // shapes, elements and place of x and w. 0 for an x that stays.
  std::vector<size_t> SavedBytes(ConstFloatSpan x, ConstFloatSpan w, bool x_stays) const;

  // Lets `saved` use memory of the caller at the place of the layer, such as tensors of another
  // library: a piece of SavedBytes for each matrix, aligned as the memory of a Buffer is. Before Forward,
  // which then allocates nothing for it; or before Backward, if the memory has what a Forward with
  // the same arguments has filled in, perhaps elsewhere. The x of a Backward is read if it stays.
  void Attach(ConstFloatSpan x,
              ConstFloatSpan w,
              bool x_stays,
              std::span<const MatrixSpan<uint8_t>> memory,
              LinearSaved& saved) const;

  // Throws Error if this layer's GEMMs cannot be computed at that shape: if the size of a Hadamard
  // transform does not divide the inner dimension, and on a device, if cuBLASLt has no algorithm that
  // keeps the order of the sums. For a model to ask when it is built.
  void CheckShape(LinearShape shape) const;

  // Computes y = x w^T and fills `saved` for Backward. With delayed scaling, updates the scales of
  // the forward operands at the end, unless `updates_scales` is false: then the call only records
  // maxima, for a batch that comes in parts. If `x_stays`, the caller leaves x unchanged until Backward; an
  // x that is saved in fp32 is then not copied. Random bits: operand o (0 to 5, in the order of
  // LinearOperand) uses stream 8 * random.stream + o at the index of the element in the tensor as
  // it is passed, or of the block under the scale rule ms-eden; signs of Hadamard transforms are
  // those of LinearOptions::hadamard_signs. A tensor that is quantised once and used twice uses the random bits of its first
  // use. With `channels` (in elements, powers of two), computes y = x diag(channels) w^T: x is
  // quantised, then its columns are multiplied by the channels, which is exact unless a float32
  // over- or underflows. dw is then that of x diag(channels), and dx is the gradient of x
  // diag(channels), not of x. Requires x: tokens x in, w: out x in, y: tokens x out, contiguous, at
  // the place of the layer, no overlap. Throws Error if one differs. On a device, tensors may be
  // bf16; a bf16 result is the float32 result rounded to it (nearest even), and any NaN of it may
  // be any NaN. From the second call on, shapes that are no larger allocate nothing and no call
  // waits. Channels are for the host alone, and not for a forward GEMM with a container or a
  // Hadamard transform. NaN and
  // infinities: quantised operands follow QuantizedMatrix, and GEMMs follow their accumulation
  // mode. Dimensions may be 0; an empty sum is +0.
  void Forward(ConstFloatSpan x,
               ConstFloatSpan w,
               FloatSpan y,
               LinearSaved& saved,
               RandomStream random = {},
               LinearObserver* observer = nullptr,
               bool x_stays = false,
               std::span<const float> channels = {},
               bool updates_scales = true);

  // Computes dx = g w and dw = g^T x from the gradient g (tokens x out) of y. A dx or dw without
  // data is not computed. `w` must be that of Forward; it is not read under
  // LinearSaves::kQuantized, nor for dw. With delayed scaling, updates at the end the scales of G
  // and of what else was quantised, if `updates_scales`. Requires `saved` as a Forward with this recipe left it, and
  // matrices of its shape as Forward does.
  void Backward(ConstFloatSpan g,
                ConstFloatSpan w,
                const LinearSaved& saved,
                FloatSpan dx,
                FloatSpan dw,
                RandomStream random = {},
                LinearObserver* observer = nullptr,
                bool updates_scales = true);

  // SaveState returns the state of delayed scaling: X, W and G one after another, then W and X of
  // the backward GEMMs if they are quantised anew, or nothing without delayed scaling. RestoreState
  // throws Error if the state does not fit this recipe, and then changes nothing.
  std::vector<float> SaveState() const;
  void RestoreState(std::span<const float> state);

 private:
  void CheckTransforms(LinearShape shape) const;

  LinearRecipe recipe_;
  Place place_;
  DelayedScales delayed_;
};

}  // namespace numsim
