// The options that select an operation of the oracle and its cases, shared by gen, check, answer and
// kappa.
#pragma once

#include <memory>
#include <string>

#include "apps/command.h"
#include "apps/rounding_options.h"
#include "numsim/oracle/cases.h"
#include "numsim/oracle/operation.h"

namespace numsim::apps {

struct OperationOptions {
  OperationRequest named;    // filled in by the parser: op, formats, accumulation mode, length
  RoundingOptions rounding;  // without --seed, which only gen has
  std::string tininess, invalid_integer;
  const CLI::App* sub = nullptr;

  // Returns the request; sets only options that the user gave. Throws Error that names the option
  // at fault.
  OperationRequest Request() const;
};

// Adds the options to `sub`. `options` must live as long as `sub`.
void AddOperationOptions(CLI::App* sub, OperationOptions& options);

// The options --level and --seed, which gen and check must be given alike.
struct LevelOptions {
  std::string level;
  uint64_t seed = 0;

  CaseLevel Parsed() const { return ParseCaseLevel(level, seed); }
};

// Adds the options to `sub`, with `levels.level` as the default level. `purpose` begins the help
// text of --level.
void AddLevelOptions(CLI::App* sub, LevelOptions& levels, const std::string& purpose);

// Adds --nan, the codes that are accepted where NaN is right.
void AddNanOption(CLI::App* sub, std::string& nan);

// Writes to standard output. Throws Error if it cannot.
void WriteToStandardOutput(std::string_view text);

// Returns a text such as "add: a e4m3fn, b e4m3fn -> result e4m3fn".
std::string OperationText(const Operation& operation);

}  // namespace numsim::apps
