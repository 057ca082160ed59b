// The tensors that Forward of a linear layer saves for Backward: their form and their memory.
#pragma once

#include <array>

#include "numsim/linear/internal/linear_operand.h"
#include "numsim/linear/linear.h"

namespace numsim {

// Returns true if Backward uses the codes of the forward GEMM: because nothing else is saved, or
// because quantising what is saved would give the same codes. `element` is that of X.
bool KeepsCodes(const LinearRecipe& recipe, Element element);

// Returns the recipe of the X that Forward saves.
OperandRecipe SavedRecipe(const LinearRecipe& recipe, bool keeps_codes);

// Returns the order in which to store codes at a place, of an operand whose rows, columns or both are
// read by GEMMs. Tensor cores read vectors of 8-bit codes that are contiguous; the CPU reads any
// order.
CodeOrder OrderFor(
    const LinearRecipe& recipe, Place place, LinearOperand operand, bool rows, bool columns);

// The form in which one tensor is saved.
struct SavedPlan {
  const char* name = "";
  OperandRecipe recipe = {};
  SavedKind kind = SavedKind::kCodes;
  MatrixShape shape;
  CodeOrder order = CodeOrder::kInput;  // of codes
  Element element = Element::kFloat32;  // of values
  Place place;

  QuantizeOptions Options() const { return OptionsOf(recipe, false, order, {}); }
  // Returns the bytes of a piece of memory for all of it.
  size_t Bytes() const;
  // Lets the matrix use such a piece.
  void Attach(MatrixSpan<uint8_t> memory, SavedMatrix& matrix) const;
  // Describes the tensor in `matrix`, and gives it the memory, uninitialised.
  void Prepare(SavedMatrix& matrix) const;
};

// The form of all tensors: X, then W if its codes are kept.
struct SavedPlans {
  LinearShape shape;
  bool keeps_codes = false;
  std::array<SavedPlan, 2> plans;

  std::span<const SavedPlan> All() const { return std::span(plans).first(keeps_codes ? 2 : 1); }
};
// Reads the shapes, elements and place of x and w alone.
SavedPlans PlanSaved(const LinearRecipe& recipe, ConstFloatSpan x, ConstFloatSpan w, bool x_stays);

// Prepares `saved` for a Forward of x.
void PrepareSaved(const SavedPlans& plans, ConstFloatSpan x, LinearSaved& saved);

}  // namespace numsim
