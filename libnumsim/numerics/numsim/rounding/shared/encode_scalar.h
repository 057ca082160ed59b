// Encodes one number on host or device: EncodeF32 and EncodeF64 of rounding/encode.h as inline
// functions without checks or tables.
#pragma once

#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim::scalar {

// Returns the random bits R at the top of a word, or 0 if the mode is not stochastic (random_bits
// is then meaningless).
NUMSIM_HOST_DEVICE inline uint32_t TopAligned(const EncodePlan& plan, uint32_t random) {
  if (plan.rounding.mode != RoundingMode::kStochastic) return 0;
  return random << (32 - plan.rounding.random_bits);
}

// Returns the bits of the float64 equal to a float32, including NaN payloads. Uses only integers: a
// cast would flush subnormals if the processor is set to do so.
NUMSIM_HOST_DEVICE inline uint64_t WidenF32(uint32_t bits) {
  const uint64_t sign = uint64_t{bits >> 31} << 63;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude == 0) return sign;
  if (magnitude >= 0x7F800000u) {
    return sign | 0x7FF0000000000000u | (uint64_t{magnitude & 0x7FFFFFu} << 29);
  }
  if (magnitude >= 0x00800000u) {
    return sign | ((uint64_t{magnitude} << 29) + (uint64_t{1023 - 127} << 52));
  }
  const int top = std::bit_width(magnitude) - 1;  // the top bit is worth 2^(top - 149)
  const uint64_t mantissa = (uint64_t{magnitude} << (52 - top)) & ((uint64_t{1} << 52) - 1);
  return sign | (static_cast<uint64_t>(top - 149 + 1023) << 52) | mantissa;
}

// Applies the general case of the rule, for every format; the kernels' cheaper cases are tested
// against it. `random` is top-aligned. The requirements are those of EncodeWord.
template <class L>
NUMSIM_HOST_DEVICE inline uint32_t EncodeGeneral(const EncodePlan& plan,
                                                 typename L::Word bits,
                                                 typename L::Word random) {
  constexpr L lanes;
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return static_cast<uint32_t>(
          EncodeWord<RuleMode::kNearestEven, ExponentRange::kGeneral>(lanes, plan, bits, random));
    case RuleMode::kStochastic:
      return static_cast<uint32_t>(
          EncodeWord<RuleMode::kStochastic, ExponentRange::kGeneral>(lanes, plan, bits, random));
    case RuleMode::kOther:
      break;
  }
  return static_cast<uint32_t>(
      EncodeWord<RuleMode::kOther, ExponentRange::kGeneral>(lanes, plan, bits, random));
}

// Returns the code of a float64 in a format without a subnormal gap. `random` is as in EncodeF64.
NUMSIM_HOST_DEVICE inline uint32_t EncodeWide(const EncodePlan& plan,
                                              uint64_t value_bits,
                                              uint32_t random) {
  return EncodeGeneral<F64Lanes>(plan, value_bits, uint64_t{TopAligned(plan, random)} << 32);
}

// Returns true if a float32 must be encoded in 64-bit words: the rule needs more mantissa bits in
// the source than in the target, and the fraction in a subnormal gap needs more than 32 bits.
NUMSIM_HOST_DEVICE inline bool NeedsWideWords(const EncodePlan& plan) {
  return plan.mantissa_bits >= F32Lanes::kMantissaBits || plan.format.subnormal_shift != 0;
}

}  // namespace numsim::scalar
