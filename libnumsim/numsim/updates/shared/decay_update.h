// Weight decay within an update.
#pragma once

#include <cstddef>

namespace numsim {

// d = fl(fl64(u - decay w)): an update with weight decay, as update_rule.h has it. The product is
// exact for a decay of float32. d may be u.
void DecayUpdate(
    const float* update, const float* weights, size_t n, float decay, float* decayed) noexcept;

}  // namespace numsim
