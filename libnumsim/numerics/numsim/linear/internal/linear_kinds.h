// The list of kinds of linear layers and the properties that distinguish them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/scale.h"

namespace numsim {

// A kind and the recipe that it stands for.
struct LinearKindRow {
  LinearKind kind;
  // One letter per operand, in the order X W, G W^T, G^T X^T of the three GEMMs. Layouts describe
  // the operand as it enters the GEMM.
  //   h  high precision
  //   t  one scale              (kTensor)
  //   r  one scale per vector   (kRow)
  //   b  blocks of a vector     (kBlock)
  //   s  square tiles           (kTile)
  std::string_view scaling;
  LinearSaves saves = LinearSaves::kInputs;
  std::string_view format = "int8";           // of quantised operands
  ScaleRule scale_rule = ScaleRule::kAbsmax;  // of quantised operands
  bool e5m2_gradients = false;                // G is e5m2 by default if the others are e4m3fn
  bool e5m2_backward = false;                 // as are the X and W of the backward GEMMs, always
  bool delayed = false;                       // allows delayed scaling
  size_t block = 0;                           // default block of b and s; 0 if it has neither

  bool Quantized() const { return scaling.find_first_not_of('h') != std::string_view::npos; }
};

// Returns true if `container` has every finite value of `format`.
bool ContainerHolds(const FormatSpec& container, const FormatSpec& format);

// Returns true if an operand may enter its GEMM as values of that format: it holds them all, and
// scales of blocks, which enter too, are powers of two.
bool FitsContainer(const OperandRecipe& operand, const FormatSpec& container);

// Returns all rows, in the order of LinearKinds().
std::span<const LinearKindRow> LinearKindRows();

// Returns the row of a kind. Throws Error that lists the kinds.
const LinearKindRow& FindLinearKind(std::string_view name);

}  // namespace numsim
