// The state of delayed scaling of a linear layer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/delayed_scale.h"

namespace numsim {

// The scales of a layer's operands under delayed scaling. A tensor that is quantised once for two
// GEMMs has one scale.
class DelayedScales {
 public:
  DelayedScales() = default;  // without delayed scaling
  explicit DelayedScales(const LinearRecipe& recipe, Place place = {});

  // Returns the scale of an operand, or null if it has no delayed scale.
  DelayedScale* Of(LinearOperand operand);
  // Updates the scales of the operands that are quantised in the forward pass, or in the backward
  // pass.
  void UpdateForward();
  void UpdateBackward();

  // As Linear::SaveState and RestoreState.
  std::vector<float> Save() const;
  void Restore(std::span<const float> state, const LinearRecipe& recipe);

 private:
  static constexpr size_t kForward = 2;  // the scales of the forward pass come first
  std::vector<DelayedScale> scales_;
  std::optional<size_t> numbers_[kLinearOperands] = {};  // by LinearOperand, in scales_
};

}  // namespace numsim
