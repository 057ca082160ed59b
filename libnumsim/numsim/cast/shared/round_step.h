// Steps of weights kept in a small format, rounded once: the inner loop of update rules.
#pragma once

#include <cstddef>

#include "numsim/cast/cast.h"

namespace numsim {

// out[i] = the value of the plan's format that base[i] + factor * direction[i] rounds to: one
// rounding, by plan.rounding and plan.overflow, of the exact sum of a float32 and a product of
// two. No intermediate float32 or float64 rounding, no overflow or underflow on the way. A zero sum
// of addends of different signs is +0. NaN and infinity by [IEEE754], then as in encode.h.
// Element i draws the random bits of index random.first_index + i.
// One thread, any length; out may be base or direction. The bits do not depend on the backend.
void RoundStepSerial(const EncodePlan& plan,
                     const float* base,
                     const float* direction,
                     float factor,
                     size_t n,
                     float* out,
                     const ArrayRandom& random = {}) noexcept;

// The same on all threads; under the backend cuda on the device where HasStepRule(plan)
// (round_step_rule.h), else here. Throws Error where the device fails.
void RoundStep(const EncodePlan& plan,
               std::span<const float> base,
               std::span<const float> direction,
               float factor,
               std::span<float> out,
               const ArrayRandom& random = {});

// The same, always here: for arrays of passing use and loops that are parallel already.
void RoundStepOnHost(const EncodePlan& plan,
                     std::span<const float> base,
                     std::span<const float> direction,
                     float factor,
                     std::span<float> out,
                     const ArrayRandom& random = {}) noexcept;

}  // namespace numsim
