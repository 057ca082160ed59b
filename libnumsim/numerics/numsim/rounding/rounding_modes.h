// The rounding modes as data: an array of the rows of rounding_modes.inc.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "numsim/rounding/rounding.h"

namespace numsim {

// A rounding mode with its name and its definition in words.
struct RoundingModeRow {
  RoundingMode mode;
  std::string_view name;    // ToString(mode)
  bool draws;               // the mode reads random bits
  std::string_view rounds;  // "toward zero"
  std::string_view at_tie;  // "to the even code", "-"
};

// Every mode, in the order of help texts and tables.
inline constexpr RoundingModeRow kRoundingModes[] = {
#define NUMSIM_ROUNDING_MODE(enumerator, value, c_name, name, draws, rounds, at_tie) \
  {RoundingMode::enumerator, name, draws, rounds, at_tie},
#include "numsim/rounding/rounding_modes.inc"
#undef NUMSIM_ROUNDING_MODE
};

// The modes that read no random bits, in the same order.
inline constexpr auto kDeterministicModes = [] {
  constexpr auto kCount =
      std::ranges::count_if(kRoundingModes, [](const RoundingModeRow& row) { return !row.draws; });
  std::array<RoundingMode, kCount> modes{};
  size_t n = 0;
  for (const RoundingModeRow& row : kRoundingModes) {
    if (!row.draws) modes[n++] = row.mode;
  }
  return modes;
}();

// Returns true if `value` is the number of a mode.
constexpr bool IsRoundingMode(int64_t value) {
  return std::ranges::any_of(kRoundingModes, [value](const RoundingModeRow& row) {
    return value == static_cast<int>(row.mode);
  });
}

// Returns true if an exact zero sum of addends of different signs is negative [IEEE754] 6.3.
constexpr bool ZeroSumIsNegative(RoundingMode mode) { return mode == RoundingMode::kDown; }

}  // namespace numsim
