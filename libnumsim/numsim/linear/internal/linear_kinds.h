// The list of kinds of linear layers, with what sets each of them apart.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/scale.h"

namespace numsim {

struct LinearKindRow {
  LinearKind kind;
  // A letter for each operand, in the order X W, G W^T, G^T X^T of the three products. The layouts
  // are those of the operand as it enters the product.
  //   h  high precision
  //   t  one scale            (kTensor)
  //   r  one scale a vector   (kRow)
  //   b  blocks of a vector   (kBlock)
  //   s  square tiles         (kTile)
  std::string_view scaling;
  LinearSaves saves = LinearSaves::kInputs;
  std::string_view format = "int8";           // of quantised operands
  ScaleRule scale_rule = ScaleRule::kAbsmax;  // of quantised operands
  bool e5m2_gradients = false;                // beside e4m3fn
  bool delayed = false;                       // may have delayed scaling
  size_t block = 0;                           // of b and s; 0: it has neither

  bool Quantised() const { return scaling.find_first_not_of('h') != std::string_view::npos; }
};

// In the order of LinearKinds().
std::span<const LinearKindRow> LinearKindRows();

// Throws Error that lists the kinds.
const LinearKindRow& FindLinearKind(std::string_view name);

}  // namespace numsim
