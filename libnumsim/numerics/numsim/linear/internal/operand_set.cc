#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/base/split_list.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim {
namespace {

constexpr Keyword<LinearOperand> kOperands[] = {
    {"forward X", LinearOperand::kForwardX},
    {"forward W", LinearOperand::kForwardW},
    {"input gradient G", LinearOperand::kInputGradientG},
    {"input gradient W", LinearOperand::kInputGradientW},
    {"weight gradient G", LinearOperand::kWeightGradientG},
    {"weight gradient X", LinearOperand::kWeightGradientX},
};

struct Part {
  std::string_view name;
  LinearOperand first, last;  // equal for a single operand
};

// Whole tensors come first, so that Text prefers them.
constexpr Part kParts[] = {
    {"x", LinearOperand::kForwardX, LinearOperand::kWeightGradientX},
    {"w", LinearOperand::kForwardW, LinearOperand::kInputGradientW},
    {"g", LinearOperand::kInputGradientG, LinearOperand::kWeightGradientG},
    {"forward.x", LinearOperand::kForwardX, LinearOperand::kForwardX},
    {"forward.w", LinearOperand::kForwardW, LinearOperand::kForwardW},
    {"input-gradient.g", LinearOperand::kInputGradientG, LinearOperand::kInputGradientG},
    {"input-gradient.w", LinearOperand::kInputGradientW, LinearOperand::kInputGradientW},
    {"weight-gradient.g", LinearOperand::kWeightGradientG, LinearOperand::kWeightGradientG},
    {"weight-gradient.x", LinearOperand::kWeightGradientX, LinearOperand::kWeightGradientX},
};

// Both operands of a GEMM. Text does not write them.
constexpr Part kGemms[] = {
    {"forward", LinearOperand::kForwardX, LinearOperand::kForwardW},
    {"input-gradient", LinearOperand::kInputGradientG, LinearOperand::kInputGradientW},
    {"weight-gradient", LinearOperand::kWeightGradientG, LinearOperand::kWeightGradientX},
};

const Part& FindPart(std::string_view text) {
  for (const Part& part : kGemms) {
    if (part.name == text) return part;
  }
  std::string names = "forward, input-gradient, weight-gradient";
  for (const Part& part : kParts) {
    if (part.name == text) return part;
    names += ", " + std::string(part.name);
  }
  throw Error::Format("'{}' is not one of {}", text, names);
}

}  // namespace

std::string_view ToString(LinearOperand operand) { return KeywordToString(kOperands, operand); }

bool OperandSet::IsOfTensors() const {
  for (const Part& part : kParts) {
    if (Has(part.first) != Has(part.last)) return false;
  }
  return true;
}

OperandSet ParseOperandSet(std::string_view text) {
  OperandSet set;
  if (text.empty()) return set;
  for (const std::string& piece : SplitList(text)) {
    const Part& part = FindPart(piece);
    set.Insert(part.first);
    set.Insert(part.last);
  }
  return set;
}

std::string Text(const OperandSet& set) {
  std::string text;
  OperandSet rest = set;
  for (const Part& part : kParts) {
    if (!rest.Has(part.first) || !rest.Has(part.last)) continue;
    text += (text.empty() ? "" : ",") + std::string(part.name);
    rest.Remove(part.first);
    rest.Remove(part.last);
  }
  return text;
}

}  // namespace numsim
