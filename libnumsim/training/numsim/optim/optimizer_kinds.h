// The table of optimisers, which the parser, the help texts and docs/optimizers.md use.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "numsim/optim/optimizer_rule.h"

namespace numsim {

// Creates the rule for one parameter. The configuration and the parameter must outlive the rule.
// May throw Error for configuration values that the optimiser does not accept.
using MakeOptimizerRule = std::unique_ptr<OptimizerRule>(const OptimizerConfig& config,
                                                         const Parameter<float>& parameter);
MakeOptimizerRule MakeAdamW, MakeStableAdamW;  // optimizer_adam.cc
MakeOptimizerRule MakeSgd, MakeLion;           // optimizer_momentum.cc

// A row of the table: one optimiser.
struct OptimizerKindRow {
  std::string_view name = {};    // optimizer.kind
  std::string_view source = {};  // a key of docs/references.md
  std::string_view state = {};   // formula for docs/optimizers.md
  std::string_view direction = {};
  MakeOptimizerRule* make = nullptr;
  // If true, a tensor's learning rate is divided by RMS / stable.threshold when that exceeds 1.
  bool clips_by_rms = false;
};

// Returns all rows, in the order in which messages and docs list them.
std::span<const OptimizerKindRow> OptimizerKindRows();
// Returns "adamw, stable-adamw, ...".
std::string OptimizerKindNames();

}  // namespace numsim
