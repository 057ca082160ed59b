// Scalar conversion to a format: the reference that every kernel matches bit for bit.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// Returns the code in the plan's format of a float32 or float64 given as its bits, rounded once
// from the exact value.
// `random` holds the caller's random bits R in its low plan.rounding.random_bits bits. Higher bits
// are ignored; the whole word is ignored unless the mode is stochastic.
// A NaN gives the format's canonical NaN, with the sign of the input if the format has NaNs of both
// signs; in a format without NaN it gives the largest positive value. The result does not depend on
// the floating-point environment: the processor's rounding mode and flush-to-zero settings have no
// effect.
uint32_t EncodeF32(const EncodePlan& plan, uint32_t value_bits, uint32_t random) noexcept;
uint32_t EncodeF64(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept;

// Convenience functions that build the encode plan on every call: for tools and tests, not for
// loops.
uint32_t Encode(const FormatSpec& format,
                float value,
                const Rounding& rounding = {},
                Overflow overflow = Overflow::kNonsaturate,
                uint32_t random = 0) noexcept;
uint32_t Encode(const FormatSpec& format,
                double value,
                const Rounding& rounding = {},
                Overflow overflow = Overflow::kNonsaturate,
                uint32_t random = 0) noexcept;

}  // namespace numsim
