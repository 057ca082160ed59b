// The six operands of a linear layer's products, and sets of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace numsim {

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
std::string_view Name(LinearOperand operand);

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

}  // namespace numsim
