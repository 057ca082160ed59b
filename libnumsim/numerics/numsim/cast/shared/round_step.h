// Update steps of weights stored in a small format, rounded once: the inner loop of the update
// rules.
#pragma once

#include <cstddef>

#include "numsim/cast/cast.h"

namespace numsim {

// Writes out[i] = the value of the plan's format that base[i] + factor * direction[i] rounds to.
// The exact sum is rounded once, by plan.rounding and plan.overflow. There is no intermediate
// rounding, overflow or underflow. In a stochastic mode, element i uses the random bits of index
// random.first_index + i.
// A zero sum of addends of different signs is +0. NaN and infinite sums follow [IEEE754] and are
// then encoded as by rounding/encode.h.
// Runs on one thread, for any length. `out` may be `base` or `direction`. The bits do not depend on
// the backend.
void RoundStepSerial(const EncodePlan& plan,
                     const float* base,
                     const float* direction,
                     float factor,
                     size_t n,
                     float* out,
                     const ArrayRandom& random = {}) noexcept;

// Writes out[i] = the value of the plan's format that fl32(base[i] + fl32(factor * direction[i]))
// rounds to. Requires a deterministic mode, no overlap of `out` with the others, and the default
// floating-point environment. Runs on one thread, for any length.
void RoundFloatStepSerial(const EncodePlan& plan,
                          const float* base,
                          const float* direction,
                          float factor,
                          size_t n,
                          float* out) noexcept;

// Does what RoundStepSerial does, on all threads or, for arrays of a device, there. Requires arrays
// of equal sizes at one place and, on a device, HasStepRule(plan) (round_step_rule.h). Under the
// backend cuda it runs on the device if it can. Throws Error if the device fails.
void RoundStep(const EncodePlan& plan,
               MatrixSpan<const float> base,
               MatrixSpan<const float> direction,
               float factor,
               MatrixSpan<float> out,
               const ArrayRandom& random = {});

// Does what RoundStep does, but always on the host: for temporary arrays and for loops that are
// already parallel.
void RoundStepOnHost(const EncodePlan& plan,
                     std::span<const float> base,
                     std::span<const float> direction,
                     float factor,
                     std::span<float> out,
                     const ArrayRandom& random = {}) noexcept;

}  // namespace numsim
