// Consecutive float32 patterns through one rule: what brute force needs.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/profiles/conversion_rule.h"

namespace numsim {

// codes[i] = EncodeByRule(rule, first + i, random). Requires a float32 source and no pattern beyond
// 2^32 - 1.
void EncodeRun(const ConversionRule& rule,
               uint32_t first,
               uint32_t random,
               std::span<uint32_t> codes) noexcept;

}  // namespace numsim
