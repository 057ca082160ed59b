// The options --rounding, --overflow, --sr-bits, --sr-variant and --seed, shared by commands.
#pragma once

#include <cstdint>
#include <string>

#include "apps/command.h"
#include "numsim/rounding/rounding.h"

namespace numsim::apps {

struct RoundingOptions {
  std::string mode = "rne";
  std::string overflow;
  std::string variant = "a";
  int random_bits = 32;
  uint64_t seed = 0;

  // Throw Error that names the option at fault.
  Rounding ParsedRounding() const;
  Overflow ParsedOverflow() const;
};

// Adds the options to `sub`. `overflow` is the default of --overflow.
void AddRoundingOptions(CLI::App* sub, RoundingOptions& options, const std::string& overflow);

}  // namespace numsim::apps
