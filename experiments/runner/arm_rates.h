// The learning rates of arms, each chosen on seeds that do not judge (`numsim tune`).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/claims/run_settings.h"

namespace numsim::experiments {

// The option that holds the rates of a run: "ARM: RATE; ARM: RATE at the end of the grid".
inline constexpr std::string_view kRatesOption = "rates";
inline constexpr std::string_view kAtEnd = "at the end of the grid";

struct ArmRate {
  std::string arm;
  std::string rate;
  bool at_end = false;  // the least or the largest that was tried: a better one may lie beyond
};

// Returns the rates of a run; empty if the option is not set. Throws Error naming the option.
std::vector<ArmRate> RatesOf(const Settings& settings);
// Returns the text of the option.
std::string RatesText(const std::vector<ArmRate>& rates);

// The final loss of a training of an arm at a rate; infinite if it diverged.
struct RateLoss {
  std::string arm, rate;
  uint64_t seed = 0;
  double loss = 0;
};

// Returns the rate of each arm with the least mean loss over its seeds; of equal ones the smaller. Arms
// are in the order of their first loss. Requires numbers as rates. An arm that diverges for some seed at
// every rate has the smallest rate, which is then at the end of the grid.
std::vector<ArmRate> ChooseRates(const std::vector<RateLoss>& losses);

inline constexpr const char* kRatesFile = "rates.csv";
// Writes the losses and the choice: columns arm, rate, seed, loss, chosen ("no", "yes" or kAtEnd).
void WriteRates(const std::filesystem::path& path, const std::vector<RateLoss>& losses);
// Returns the chosen rates of such a file. Throws Error naming it if its choice is not that of its
// losses.
std::vector<ArmRate> ReadRates(const std::filesystem::path& path);

}  // namespace numsim::experiments
