// What a linear layer computes in which precision, as data.
//
// A linear layer with inputs X (tokens x in), weights W (out x in), outputs Y = X W^T and the
// gradient G of Y is three products A B^T, each with its own inner dimension:
//   forward           Y  = X W^T        A = X    B = W      inner dimension: in
//   input gradient    dX = G W          A = G    B = W^T    inner dimension: out
//   weight gradient   dW = G^T X        A = G^T  B = X^T    inner dimension: tokens
// A recipe says for each of the six operands how it is quantised, and for each product how it is
// accumulated. Layouts are stated for the operand as it enters the product, vectors of the inner
// dimension as rows: kRow is one scale for each vector ("row-wise" for X, "column-wise" for X^T),
// kBlock is a block along the inner dimension.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// The six operands of a linear layer's products, and sets of them.

// Numbered as products follow each other. The number is that of the random draws.
enum class LinearOperand : uint8_t {
  kForwardX,
  kForwardW,
  kInputGradientG,
  kInputGradientW,
  kWeightGradientG,
  kWeightGradientX,
};
inline constexpr int kLinearOperands = 6;
// "forward X", "forward W", "input gradient G", ...: operands as they enter the products.
std::string_view ToString(LinearOperand operand);

// A set of operands. As text, parts separated by commas: x, w, g for a tensor as both of its
// operands; forward.x, forward.w, input-gradient.g, input-gradient.w, weight-gradient.g,
// weight-gradient.x for one. The empty text is the empty set.
class OperandSet {
 public:
  constexpr OperandSet() = default;
  static constexpr OperandSet All() {
    OperandSet all;
    all.bits_ = (1 << kLinearOperands) - 1;
    return all;
  }

  constexpr void Insert(LinearOperand operand) { bits_ |= Bit(operand); }
  constexpr void Remove(LinearOperand operand) { bits_ &= ~Bit(operand); }
  constexpr bool Has(LinearOperand operand) const { return (bits_ & Bit(operand)) != 0; }
  constexpr bool Empty() const { return bits_ == 0; }
  // Holds both operands or neither of each tensor.
  bool IsOfTensors() const;
  friend constexpr bool operator==(const OperandSet&, const OperandSet&) = default;

 private:
  static constexpr unsigned Bit(LinearOperand operand) {
    return 1u << static_cast<unsigned>(operand);
  }
  unsigned bits_ = 0;
};

// Throws Error listing the parts.
OperandSet ParseOperandSet(std::string_view text);
// Reads back to the same set: whole tensors first.
std::string Text(const OperandSet& set);

struct OperandRecipe {
  Format format;
  ScaleLayout layout;  // not kColumn
  ScaleRule scale_rule = ScaleRule::kAbsmax;
  Rounding rounding;
  // kSaturate for quantised operands. kNonsaturate for those in high precision, where infinities
  // stay what they are.
  Overflow overflow = Overflow::kSaturate;
  bool delayed = false;  // scale from earlier steps (LinearRecipe::delayed); layout is kTensor then

  friend bool operator==(const OperandRecipe& x, const OperandRecipe& y) {
    return x.format.spec == y.format.spec && x.layout == y.layout && x.scale_rule == y.scale_rule &&
           x.rounding == y.rounding && x.overflow == y.overflow && x.delayed == y.delayed;
  }

  // A plain cast, or nothing at all for fp32: high precision.
  bool Unscaled() const { return scale_rule == ScaleRule::kNone && !delayed; }
};

// A plain cast to `format`, rounded to nearest even.
OperandRecipe HighPrecision(const Format& format);

struct GemmRecipe {
  OperandRecipe a, b;
  AccumulationMode accumulation;
};

enum class LinearGemm : uint8_t { kForward, kInputGradient, kWeightGradient };
inline constexpr LinearGemm kProducts[] = {
    LinearGemm::kForward, LinearGemm::kInputGradient, LinearGemm::kWeightGradient};
// "forward", "input-gradient", "weight-gradient".
std::string_view ToString(LinearGemm product);

// What Forward keeps of X and W for Backward.
enum class LinearSaves : uint8_t {
  kInputs,  // X in high precision; W is the caller's parameter and costs nothing
  // The quantised X and W of the forward product, and nothing else. The input gradient takes the
  // kept W, so both recipes of W are equal and can be read along either dimension (kTensor, square
  // kTile). The weight gradient takes the kept X if its recipe is equal and can be read so, else X
  // dequantised.
  kQuantized,
};

struct LinearRecipe {
  std::string kind;
  GemmRecipe products[3];  // by Product
  LinearSaves saves = LinearSaves::kInputs;
  Format high_precision;  // of X where it is kept: fp32, bf16, fp16
  std::optional<DelayedScalingOptions> delayed;

  const GemmRecipe& operator[](LinearGemm p) const { return products[static_cast<int>(p)]; }
  GemmRecipe& operator[](LinearGemm p) { return products[static_cast<int>(p)]; }
};

// The choices that a kind leaves open. Fields left empty take the kind's default. All kinds have
// `high_precision` and `high_precision_accumulate`, and `standard` has nothing else.
struct LinearOptions {
  std::string kind = "standard";
  std::string format;           // of quantised operands: int8; e4m3fn for te-hybrid, block, mx and
                                // row-wise-gw-hp
  std::string gradient_format;  // of quantised G: as `format`, but e5m2 beside e4m3fn for
                                // tensor-wise and te-hybrid
  std::string high_precision;   // of operands that are not quantised: bf16; or fp32, fp16
  Rounding gradient_rounding;   // of quantised G
  // Of products of quantised operands: exact for two int8, else fp32.
  std::string accumulate;
  std::string high_precision_accumulate;  // of the others: fp32
  // Of quantised operands, as ParseScaleRule: absmax; e8m0 for mx, pow2-ceil for block and
  // row-wise-gw-hp; none, a cast that saturates, for formats of more than 8 bits. Not with
  // `delayed`. Beware: scaled to the largest value of a format with 7 or 8 exponent bits, products
  // overflow float32.
  std::string scale_rule;
  // te-hybrid: how X, W and G are scaled; empty: current scaling.
  std::optional<DelayedScalingOptions> delayed;
  size_t block = 0;  // elements of a block of `block` and `mx`: 128, 32
  // Operands that stay in high precision where the kind would quantise them. Of kinds that keep
  // codes (switchback-m, te-hybrid) whole tensors alone.
  OperandSet high_operands;
};

// A row of the list of kinds.
struct LinearKind {
  std::string_view name;     // standard, switchback, ...
  std::string_view summary;  // one line
  std::string_view source;   // algorithm or section and key of docs/references.md
};
// standard, switchback, switchback-m, switchback-q, llm-int8, tensor-wise, row-wise-gw-hp,
// te-hybrid, block, mx.
std::span<const LinearKind> LinearKinds();

// Throws Error naming the option: an unknown kind, format, rule; a format that cannot be used there
// (more than 16 bits quantised, no sign); an option that the kind does not have.
LinearRecipe MakeLinearRecipe(const LinearOptions& options);

}  // namespace numsim
