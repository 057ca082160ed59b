// Rounding in formats with a hole between their subnormals and normals (bitsandbytes' map [bnb]).
#pragma once

#include <cstdint>

#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Returns the code of a float64, as EncodeF64. Requires plan.format.subnormal_shift > 0.
// In the hole the discarded fraction is (|x| - low) / (high - low), whose denominator is not a
// power of two, so it is compared as an exact quotient of integers.
uint32_t EncodeWithHole(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept;

}  // namespace numsim
