#include "numsim/linear/delayed_scales.h"

#include <utility>

#include "numsim/base/error.h"

namespace numsim {

DelayedScales::DelayedScales(const LinearRecipe& recipe, Place place) {
  if (!recipe.delayed.has_value()) return;
  const auto add = [&](LinearOperand operand) {
    numbers_[static_cast<size_t>(operand)] = scales_.size();
    scales_.emplace_back(recipe[operand].format.spec, *recipe.delayed, place);
  };
  const auto share = [&](LinearOperand operand, LinearOperand with) {
    numbers_[static_cast<size_t>(operand)] = numbers_[static_cast<size_t>(with)];
  };
  // An operand in high precision keeps a place, so that the state of a kind always has one form.
  add(LinearOperand::kForwardX);
  add(LinearOperand::kForwardW);
  add(LinearOperand::kInputGradientG);
  share(LinearOperand::kWeightGradientG, LinearOperand::kInputGradientG);
  constexpr std::pair<LinearOperand, LinearOperand> kCopies[] = {
      {LinearOperand::kInputGradientW, LinearOperand::kForwardW},
      {LinearOperand::kWeightGradientX, LinearOperand::kForwardX}};
  for (const auto& [copy, original] : kCopies) {
    if (recipe.saves == LinearSaves::kQuantized) {
      share(copy, original);
    } else {
      add(copy);
    }
  }
}

DelayedScale* DelayedScales::Of(LinearOperand operand) {
  const std::optional<size_t>& number = numbers_[static_cast<size_t>(operand)];
  return number.has_value() ? &scales_[*number] : nullptr;
}

void DelayedScales::UpdateForward() {
  for (size_t i = 0; i < scales_.size() && i < kForward; ++i) scales_[i].Update();
}

void DelayedScales::UpdateBackward() {
  for (size_t i = kForward; i < scales_.size(); ++i) scales_[i].Update();
}

std::vector<float> DelayedScales::Save() const {
  std::vector<float> state;
  for (const DelayedScale& scale : scales_) {
    const std::vector<float> one = scale.Save();
    state.insert(state.end(), one.begin(), one.end());
  }
  return state;
}

void DelayedScales::Restore(std::span<const float> state, const LinearRecipe& recipe) {
  const size_t each = recipe.delayed.has_value() ? 1 + recipe.delayed->history : 0;
  if (state.size() != scales_.size() * each) {
    throw Error::Format("scaling state of {} numbers; kind '{}' has {}",
                        state.size(),
                        recipe.kind,
                        scales_.size() * each);
  }
  std::vector<DelayedScale> restored = scales_;
  for (size_t i = 0; i < restored.size(); ++i) restored[i].Restore(state.subspan(i * each, each));
  scales_ = std::move(restored);
}

}  // namespace numsim
