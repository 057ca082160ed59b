#include "numsim/optim/optimizer_kinds.h"

#include "numsim/base/nearest_name.h"

namespace numsim {
namespace {

constexpr OptimizerKindRow kRows[] = {
    {.name = "adamw",
     .source = "[AdamW]",
     .state = "m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2",
     .direction = "-(m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)",
     .make = MakeAdamW},
    {.name = "stable-adamw",
     .source = "[SwitchBack]",
     .state = "m = b1 m + (1 - b1) g, u = b2 u + (1 - b2) g^2",
     .direction = "-m / (sqrt(u) + epsilon), at lr / max(1, RMS / threshold)",
     .make = MakeStableAdamW,
     .clips_by_rms = true},
    {.name = "sgd",
     .source = "[Polyak]",
     .state = "m = beta1 m + g",
     .direction = "-m",
     .make = MakeSgd},
    {.name = "lion",
     .source = "[Lion]",
     .state = "m = beta2 m + (1 - beta2) g, after the direction",
     .direction = "-sign(beta1 m + (1 - beta1) g)",
     .make = MakeLion},
};

consteval OptimizerKind KindOf(std::string_view name) {
  const OptimizerKindRow* row = kRows;
  while (row->name != name) ++row;  // does not compile for other names
  return {row};
}

}  // namespace

constinit const OptimizerKind OptimizerKind::kAdamW = KindOf("adamw");
constinit const OptimizerKind OptimizerKind::kStableAdamW = KindOf("stable-adamw");
constinit const OptimizerKind OptimizerKind::kSgd = KindOf("sgd");
constinit const OptimizerKind OptimizerKind::kLion = KindOf("lion");

std::span<const OptimizerKindRow> OptimizerKindRows() { return kRows; }

std::string OptimizerKindNames() {
  std::string names;
  for (const OptimizerKindRow& row : kRows) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

OptimizerKind ParseOptimizerKind(std::string_view text) {
  for (const OptimizerKindRow& row : kRows) {
    if (row.name == text) return {&row};
  }
  throw NotOneOf("optimizer", text, OptimizerKindNames());
}

std::string_view ToString(OptimizerKind kind) { return kind.row->name; }

}  // namespace numsim
