// The table of optimisers. Parser, help and docs/optimizers.md read it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "numsim/optim/optimizer_rule.h"

namespace numsim {

// Makes the rule of one parameter. Both live as long as the rule. May throw Error for numbers that
// the optimiser does not take.
using MakeOptimizerRule = std::unique_ptr<OptimizerRule>(const OptimizerConfig& config,
                                                         const Parameter<float>& parameter);
MakeOptimizerRule MakeAdamW, MakeStableAdamW;  // optimizer_adam.cc
MakeOptimizerRule MakeSgd, MakeLion;           // optimizer_momentum.cc

// An optimiser.
struct OptimizerKindRow {
  std::string_view name = {};    // optimizer.kind
  std::string_view source = {};  // a key of docs/references.md
  std::string_view state = {};   // formulas of docs/optimizers.md
  std::string_view direction = {};
  MakeOptimizerRule* make = nullptr;
  // A tensor's learning rate is divided by RMS / stable.threshold where that is above 1.
  bool clips_by_rms = false;
};

// All of them, in the order of messages and docs.
std::span<const OptimizerKindRow> OptimizerKindRows();
// "adamw, stable-adamw, ...".
std::string OptimizerKindNames();

}  // namespace numsim
