// Scalar conversion to a format: the reference that every kernel equals bit for bit.
#pragma once

#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// Returns the code of `value` (float32 or float64, given as its bits) in the plan's format, rounded
// once from the exact value.
// `random` holds R in its low `random_bits` bits, which the caller draws; higher bits are ignored,
// and so is the whole word unless the mode is stochastic.
// NaN: the format's canonical NaN, with the sign of `value` where the format has NaNs of both
// signs; a format without NaN gives its largest positive value. Independent of the floating-point
// environment: no rounding mode or flush-to-zero setting of the processor changes a bit.
uint32_t EncodeF32(const EncodePlan& plan, uint32_t value_bits, uint32_t random) noexcept;
uint32_t EncodeF64(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept;

// Conveniences that build the plan on every call: for tools and tests, not for loops.
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
