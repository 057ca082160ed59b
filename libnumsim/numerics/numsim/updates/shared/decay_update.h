// Weight decay applied to an update.
#pragma once

#include <cstddef>

namespace numsim {

// Writes decayed[i] = fl32(fl64(u - decay w)), the update with weight decay that update_rule.h
// defines. The product is exact because `decay` is a float32. `decayed` may be `update`.
void DecayUpdate(
    const float* update, const float* weights, size_t n, float decay, float* decayed) noexcept;

}  // namespace numsim
