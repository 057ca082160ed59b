// The keys of [attention].
#include "numsim/config/shared/config_table.h"
#include "numsim/ops/attention_recipe.h"

namespace numsim {

ConfigRows<AttentionPrecision> AttentionRows() {
  using A = AttentionPrecision;
  constexpr const char* kFormats = "a signed format, with scales of at most 16 bits";
  const auto same = [](const std::string& text) { return text; };
  // Under numsim's own name.
  const auto format = [](const std::string& text) {
    return text.empty() ? text : ParseFormat(text).name;
  };
  // clang-format off
  return {
      TextRow("format",          &A::format,          format, same, "format of queries, keys, values and probabilities P as operands of the products", kFormats),
      TextRow("gradient_format", &A::gradient_format, format, same, "format of the gradients of the output and of the scores as operands; empty: as format", kFormats),
      TextRow("accumulate",      &A::accumulate,      "accumulation mode of all products", "an accumulation mode (oracle.md) except library"),
      TextRow("scaling",         &A::scaling,         "elements of an operand other than P that share a scale; empty: head", "head, row, block:N"),
      TextRow("scale_rule",      &A::scale_rule,      "how their scales are computed from absolute maxima; empty: absmax for at most 8 bits, else none",
              AttentionScaleRuleNames()),
      RealRow("p_scale",         &A::p_scale,         kAtLeastZero, "scale of P, which is stored as P / p_scale; 0: that of the scale rule for an absolute maximum of 1"),
  };
  // clang-format on
}

}  // namespace numsim
