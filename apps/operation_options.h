// The options that name an operation of the oracle, shared by gen, check and kappa.
#pragma once

#include <memory>
#include <string>

#include "apps/command.h"
#include "apps/rounding_options.h"
#include "numsim/oracle/operation.h"

namespace numsim::apps {

struct OperationOptions {
  OperationRequest named;    // as the parser fills it in: formats, accumulator, length
  RoundingOptions rounding;  // --seed is gen's alone
  std::string tininess;
  const CLI::App* sub = nullptr;

  // Only options that were given are set. Throws Error naming the option at fault.
  OperationRequest Request() const;
};

// Adds the options to `sub`. `options` must live as long as `sub`.
void AddOperationOptions(CLI::App* sub, OperationOptions& options);

// "add: a e4m3fn, b e4m3fn -> result e4m3fn".
std::string OperationText(const Operation& operation);

}  // namespace numsim::apps
