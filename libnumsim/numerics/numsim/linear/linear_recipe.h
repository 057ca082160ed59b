// Recipes: the precision of each computation of a linear layer, as data.
//
// A linear layer with inputs X (tokens x in), weights W (out x in), outputs Y = X W^T and the
// gradient G of Y consists of three GEMMs A B^T, each with its own inner dimension:
//   forward           Y  = X W^T        A = X    B = W      inner dimension: in
//   input gradient    dX = G W          A = G    B = W^T    inner dimension: out
//   weight gradient   dW = G^T X        A = G^T  B = X^T    inner dimension: tokens
// A recipe states for each of the six operands how it is quantised, and for each GEMM how it is
// accumulated. Layouts describe the operand as it enters the GEMM, with the vectors of the inner
// dimension as rows: kRow is one scale per vector ("row-wise" for X, "column-wise" for X^T), and
// kBlock is a block along the inner dimension.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/delayed_scale.h"
#include "numsim/quantize/hadamard.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// The six operands of a linear layer's GEMMs, in the order of computation. The number of an operand
// selects its random bits.
enum class LinearOperand : uint8_t {
  kForwardX,
  kForwardW,
  kInputGradientG,
  kInputGradientW,
  kWeightGradientG,
  kWeightGradientX,
};
// The number of operands.
inline constexpr int kLinearOperands = 6;
// Returns "forward X", "forward W", "input gradient G", ...: the operands as they enter the GEMMs.
std::string_view ToString(LinearOperand operand);

// A set of operands. Its text is a comma-separated list: x, w or g for both operands of a tensor;
// forward, input-gradient or weight-gradient for both operands of a GEMM; forward.x, forward.w,
// input-gradient.g, input-gradient.w, weight-gradient.g or weight-gradient.x for a single operand.
// An empty text is the empty set.
class OperandSet {
 public:
  constexpr OperandSet() = default;
  // Returns the set of all operands.
  static constexpr OperandSet All() {
    OperandSet all;
    all.bits_ = (1 << kLinearOperands) - 1;
    return all;
  }

  // Add, remove and look up an operand; Empty returns true for the empty set.
  constexpr void Insert(LinearOperand operand) { bits_ |= Bit(operand); }
  constexpr void Remove(LinearOperand operand) { bits_ &= ~Bit(operand); }
  constexpr bool Has(LinearOperand operand) const { return (bits_ & Bit(operand)) != 0; }
  constexpr bool Empty() const { return bits_ == 0; }
  // Returns true if the set contains both operands or neither operand of each tensor.
  bool IsOfTensors() const;
  friend constexpr bool operator==(const OperandSet&, const OperandSet&) = default;

 private:
  static constexpr unsigned Bit(LinearOperand operand) {
    return 1u << static_cast<unsigned>(operand);
  }
  unsigned bits_ = 0;
};

// Returns the set that `text` describes. Throws Error listing the valid parts.
OperandSet ParseOperandSet(std::string_view text);
// Returns a text that ParseOperandSet reads back to the same set. Whole tensors come first.
std::string Text(const OperandSet& set);

// Where the signs of Hadamard transforms come from.
enum class HadamardSource : uint8_t {
  kMask,     // a fixed mask; 0 is the plain Walsh-Hadamard transform
  kRandom,   // drawn once: all layers and steps of a seed have the same
  kRedrawn,  // drawn for each layer and step
};

// The Hadamard transform of an operand along the inner dimension, before it is quantised
// (quantize/hadamard.h). Its results are rounded to LinearRecipe::high_precision, to nearest even.
struct HadamardRecipe {
  size_t size = 0;  // elements per block; 0: no transform
  HadamardSource source = HadamardSource::kMask;
  uint16_t mask = 0;  // of kMask

  friend bool operator==(const HadamardRecipe&, const HadamardRecipe&) = default;
};

// How one operand is quantised.
struct OperandRecipe {
  Format format = {};
  ScaleLayout layout = {};  // not kColumn
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  Rounding rounding = {};
  // kSaturate for quantised operands; kNonsaturate for those in high precision, where infinities
  // are preserved.
  Overflow overflow = Overflow::kSaturate;
  bool delayed = false;  // scale from earlier steps (LinearRecipe::delayed); requires kTensor
  HadamardRecipe hadamard = {};  // equal for both operands of a GEMM

  friend bool operator==(const OperandRecipe& x, const OperandRecipe& y) {
    return x.format.spec == y.format.spec && x.layout == y.layout && x.scale_rule == y.scale_rule &&
           x.rounding == y.rounding && x.overflow == y.overflow && x.delayed == y.delayed &&
           x.hadamard == y.hadamard;
  }

  // Returns true for operands in high precision: a plain cast, or no operation at all for fp32.
  bool Unscaled() const { return scale_rule == ScaleRule::kNone && !delayed; }
};

// Returns a recipe that casts to `format`, rounding to nearest even.
OperandRecipe HighPrecision(const Format& format);

// How one GEMM is computed.
struct GemmRecipe {
  OperandRecipe a = {}, b = {};
  AccumulationMode accumulation = {};
  // If set, the operands enter as values of this format, which holds every value of theirs: what a
  // device does with formats that its tensor cores lack. It is the format that `accumulation` sees.
  // Scales of blocks and tiles, then powers of two, are multiplied into the operands.
  std::optional<Format> container = {};
};

// Returns the signs and the mask that a text of LinearOptions::hadamard_signs means, with size 0.
// Throws Error for others.
HadamardRecipe ParseHadamardSigns(std::string_view text);
// Returns "hadamard:16:random", "hadamard:16:0xD7E8", ...; "" without a transform.
std::string HadamardText(const HadamardRecipe& recipe);

// The three GEMMs of a linear layer.
enum class LinearGemm : uint8_t { kForward, kInputGradient, kWeightGradient };
// The GEMMs in the order of computation.
inline constexpr LinearGemm kProducts[] = {
    LinearGemm::kForward, LinearGemm::kInputGradient, LinearGemm::kWeightGradient};
// Returns "forward", "input-gradient" or "weight-gradient".
std::string_view ToString(LinearGemm product);
// Returns the list of GEMMs of a text, LinearOptions::hadamard, in the order of kProducts. Throws
// Error for other names.
std::string ParseGemms(std::string_view text);
// Returns the GEMM of an operand.
constexpr LinearGemm GemmOf(LinearOperand operand) {
  return static_cast<LinearGemm>(static_cast<int>(operand) / 2);
}

// The tensors of X and W that Forward saves for Backward.
enum class LinearSaves : uint8_t {
  kInputs,  // X in high precision; W is the caller's parameter and costs nothing
  // Only the quantised X and W of the forward GEMM. The input gradient uses the saved W, so both
  // operands of W have the same recipe, whose layout is its own transpose (kTensor, square kTile).
  // The weight gradient uses the saved X if the same holds for X; otherwise X is dequantised.
  kQuantized,
};

// The precision of a linear layer.
struct LinearRecipe {
  std::string kind = {};
  GemmRecipe products[3] = {};  // indexed by LinearGemm
  LinearSaves saves = LinearSaves::kInputs;
  Format high_precision = {};  // format of X if it is saved in high precision: fp32, bf16 or fp16
  std::optional<DelayedScalingOptions> delayed = {};
  // Whether the operand X, or W, of the backward GEMM is made from the dequantised codes of the forward
  // GEMM and not from the tensor. Then Forward saves X as these codes.
  bool x_from_codes = false, w_from_codes = false;

  const GemmRecipe& operator[](LinearGemm p) const { return products[static_cast<int>(p)]; }
  GemmRecipe& operator[](LinearGemm p) { return products[static_cast<int>(p)]; }
  const OperandRecipe& operator[](LinearOperand operand) const {
    const auto index = static_cast<size_t>(operand);
    return index % 2 == 0 ? products[index / 2].a : products[index / 2].b;
  }
};

// The choices that a kind of recipe leaves open. Empty fields select the kind's default. All kinds
// have `high_precision` and `high_precision_accumulate`; `standard` has no other options.
struct LinearOptions {
  std::string kind = "standard";
  // Of quantised operands; for `mx` and `block` also a word for a format with scales (ScaledFormats),
  // such as mxfp4 or nvfp4, which sets `block` and `scale_rule` too if they are empty. Default: e4m3fn for te-hybrid, block, mx and row-wise-gw-hp, else int8.
  std::string format = {};
  // Of the quantised G, for e5m2-backward also of X and W in the backward GEMMs. Default: `format`,
  // but e5m2 for tensor-wise, te-hybrid and e5m2-backward if `format` is e4m3fn, and for the last
  // also if it is e4m3.
  std::string gradient_format = {};
  std::string high_precision =
      {};  // of operands that are not quantised: bf16 (default), fp32 or fp16
  Rounding gradient_rounding = {};  // of the quantised G
  // Accumulation mode of GEMMs with a quantised operand. Default: exact for two int8 operands, else
  // fp32. A block-scaled mode (mxf8f6f4, mxf4, mxf4nvf4) is for `mx` with its formats and scales.
  // "tensor-cores": the mode, and where it is needed the container, that ForDevice chooses; a
  // GEMM that tensor cores cannot serve is refused.
  std::string accumulate = {};
  // The accumulation mode of the other GEMMs, in the same words. Default: fp32.
  std::string high_precision_accumulate = {};
  // Scale rule of quantised operands, in the notation of ParseScaleRule. Default: absmax; e8m0 for
  // mx; pow2-ceil for block and row-wise-gw-hp; pow2-floor for e5m2-backward; none (a cast that
  // saturates) for formats of more than 8 bits. Pieces OPERAND=RULE of a comma-separated list, with
  // an operand as in OperandSet, are the rules of these operands; the last one counts:
  // "nvfp4,forward.x=nvfp4-row". Not for kinds that save codes. ms-eden needs a GEMM with a Hadamard
  // transform, whose blocks have a correction each, and nearest rounding. With `delayed`: absmax, pow2-floor or pow2-ceil,
  // and it takes the place of delayed->rule. Caution: if operands are scaled to the largest value
  // of a format with 7 or 8 exponent bits, their products overflow float32.
  std::string scale_rule = {};
  // te-hybrid, e5m2-backward: delayed scaling of X, W and G; empty: current scaling.
  std::optional<DelayedScalingOptions> delayed = {};
  size_t block = 0;  // elements per block of `block` (default 128) and `mx` (32)
  // Format in which operands enter the GEMMs with quantised operands (GemmRecipe::container): bf16
  // or fp16. Default: none, the operands' own formats.
  std::string container = {};
  // Operands that stay in high precision although the kind quantises them. Kinds that save codes
  // (switchback-m, te-hybrid) only allow whole tensors.
  OperandSet high_operands = {};
  // Tensors, x and w, whose operand of the backward GEMM is made from the dequantised codes of the
  // forward GEMM, which must quantise it: what [TransformerEngine] calls rowwise_dequantized. With
  // the operand in high_operands it is the dequantised tensor in high precision. Not for kinds that
  // save codes, nor with delayed scaling or a transformed forward GEMM.
  OperandSet backward_from_codes = {};
  // GEMMs whose operands are Hadamard-transformed along the inner dimension, which must be a
  // multiple of the size: a comma-separated list of forward, input-gradient, weight-gradient. A GEMM
  // whose operands are both in high_operands is not transformed. Not for GEMMs in which the kind
  // quantises nothing, nor for kinds that save codes.
  std::string hadamard = {};
  size_t hadamard_size = 0;  // elements per block: 16 (default), 32, 64 or 128
  // The signs of the transforms: random (default), redrawn, fixed (none changes) or a mask of 16 bits
  // such as 0xD7E8, which is repeated (HadamardSource). Random bits: bit i of RandomStream{seed, 7},
  // or under redrawn of {seed, 8 * stream + 6}, for seed and stream of Linear::Forward.
  std::string hadamard_signs = {};
};

// An entry of the list of kinds.
struct LinearKind {
  std::string_view name;     // standard, switchback, ...
  std::string_view summary;  // one line
  std::string_view source;   // algorithm or section, and key of docs/references.md
};
// Returns all kinds: standard, switchback, switchback-m, switchback-q, llm-int8, llm-int8-tensor-w,
// tensor-wise, row-wise-gw-hp, te-hybrid, e5m2-backward, block, mx.
std::span<const LinearKind> LinearKinds();

// Returns the recipe that the options describe. Throws Error naming the option if a kind, format or
// rule is unknown, a format cannot be used there (a quantised operand needs a signed format of at
// most 16 bits), or the kind does not have an option that is set.
LinearRecipe MakeLinearRecipe(const LinearOptions& given);

// Throws Error with the reason if a device has no GEMM of the recipe: of formats or containers that
// its tensor cores do not multiply, in a mode that they do not have, or with scales that change
// along the inner dimension and are not in the operands. Under the modes fp32, fp64 and
// fp32-chunked, and exact for int8, a device has every GEMM. Needs no device.
void CheckOnDevice(const LinearRecipe& recipe);

// Returns the recipe with the accumulation modes of Hopper's tensor cores: exact for int8 x int8,
// hopper-fp8-fast for e4m3fn and e5m2, hopper-bf16, hopper-fp16 or, for weight gradients in bf16 and
// fp16, trunc:25,16,8192, which is the same with the tokens summed in parts; and for GEMMs of other
// formats, or with scales along the inner dimension that are powers of two, the container bf16 or
// fp16 that holds them. With `library`, mode library replaces all of these modes except exact:
// cuBLASLt may then sum in any order, on any device. GEMMs that no tensor core supports keep their
// mode. Needs no device.
LinearRecipe ForDevice(LinearRecipe recipe, bool library = false);

}  // namespace numsim
