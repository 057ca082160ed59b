#include "apps/rounding_options.h"

#include "numsim/rounding/rounding_modes.h"

namespace numsim::apps {
namespace {

// Returns "rne, rna, ... or sr".
std::string ModeNames() {
  std::string names;
  for (const RoundingModeRow& row : kRoundingModes) {
    const bool last = &row == std::end(kRoundingModes) - 1;
    names += std::string(names.empty() ? "" : last ? " or " : ", ").append(row.name);
  }
  return names;
}

}  // namespace

void AddRoundingOptions(CLI::App* sub, RoundingOptions& options, const std::string& overflow) {
  options.overflow = overflow;
  sub->add_option("--rounding", options.mode, "Rounding mode: " + ModeNames())
      ->capture_default_str();
  sub->add_option(
         "--overflow", options.overflow, "Overflow policy: saturate, nonsaturate or propagate")
      ->capture_default_str();
  sub->add_option("--sr-bits", options.random_bits, "Number of random bits of stochastic rounding")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  sub->add_option("--sr-variant", options.variant, "Variant of stochastic rounding: a, b or c")
      ->capture_default_str();
  sub->add_option(
         "--seed", options.seed, "Seed of stochastic rounding; use a different one per array")
      ->check(Unsigned64())
      ->capture_default_str();
}

Rounding RoundingOptions::ParsedRounding() const {
  return {ParseRoundingMode(mode), ParseStochasticVariant(variant), random_bits};
}

Overflow RoundingOptions::ParsedOverflow() const { return ParseOverflow(overflow); }

}  // namespace numsim::apps
