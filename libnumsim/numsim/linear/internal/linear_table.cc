#include "numsim/linear/internal/linear_table.h"

#include <fmt/format.h>

#include "numsim/linear/linear_recipe.h"

namespace numsim {
namespace {

// "int8 row", "e4m3fn block:32 e8m0", "bf16".
std::string OperandText(const OperandRecipe& operand) {
  if (operand.Unscaled()) return operand.format.name;
  const std::string text = fmt::format("{} {}", operand.format.name, Name(operand.layout));
  if (operand.scale_rule == ScaleRule::kAbsmax) return text;
  return fmt::format("{} {}", text, Name(operand.scale_rule));
}

// "int8 row x int8 tensor, exact".
std::string ProductText(const ProductRecipe& product) {
  return fmt::format(
      "{} x {}, {}", OperandText(product.a), OperandText(product.b), Name(product.accumulator));
}

// "X bf16, 2".
std::string KeptText(const char* tensor, const Format& format) {
  return fmt::format("{} {}, {}", tensor, format.name, format.spec.StorageBytes());
}

std::string KeptText(const LinearRecipe& recipe) {
  if (recipe.keeps == LinearKeeps::kInputs) return KeptText("X", recipe.high_precision);
  const ProductRecipe& forward = recipe[Product::kForward];
  return KeptText("X", forward.a.format) + "; " + KeptText("W", forward.b.format);
}

}  // namespace

std::string LinearTable() {
  std::string table =
      "| kind | forward X x W | input gradient G x W^T | "
      "weight gradient G^T x X^T | kept, bytes an "
      "element | source |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const LinearKind& kind : LinearKinds()) {
    LinearOptions options;
    options.kind = kind.name;
    const LinearRecipe recipe = MakeLinearRecipe(options);
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n",
                         kind.name,
                         ProductText(recipe[Product::kForward]),
                         ProductText(recipe[Product::kInputGradient]),
                         ProductText(recipe[Product::kWeightGradient]),
                         KeptText(recipe),
                         kind.source);
  }
  return table;
}

}  // namespace numsim
