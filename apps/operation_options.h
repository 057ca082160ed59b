// The options that select an operation of the oracle, shared by gen, check and kappa.
#pragma once

#include <memory>
#include <string>

#include "apps/command.h"
#include "apps/rounding_options.h"
#include "numsim/oracle/operation.h"

namespace numsim::apps {

struct OperationOptions {
  OperationRequest named;    // filled in by the parser: op, formats, accumulation mode, length
  RoundingOptions rounding;  // without --seed, which only gen has
  std::string tininess;
  const CLI::App* sub = nullptr;

  // Returns the request; sets only options that the user gave. Throws Error that names the option
  // at fault.
  OperationRequest Request() const;
};

// Adds the options to `sub`. `options` must live as long as `sub`.
void AddOperationOptions(CLI::App* sub, OperationOptions& options);

// Returns a text such as "add: a e4m3fn, b e4m3fn -> result e4m3fn".
std::string OperationText(const Operation& operation);

}  // namespace numsim::apps
