#include "numsim/rounding/encode.h"

#include <bit>

#include "numsim/rounding/hole.h"
#include "numsim/rounding/lanes_scalar.h"

namespace numsim {
namespace {

// The scalar code takes the rule's general case for every format; the kernels' cheaper cases are
// tested against it.
template <class L>
uint32_t EncodeScalar(const EncodePlan& plan, typename L::Word bits, typename L::Word random) {
  constexpr L lanes;
  switch (plan.rounding.mode) {
    case RoundingMode::kNearestEven:
      return static_cast<uint32_t>(
          scalar::EncodeWord<scalar::RuleMode::kNearestEven, ExponentRange::kGeneral>(
              lanes, plan, bits, random));
    case RoundingMode::kStochastic:
      return static_cast<uint32_t>(
          scalar::EncodeWord<scalar::RuleMode::kStochastic, ExponentRange::kGeneral>(
              lanes, plan, bits, random));
    default:
      return static_cast<uint32_t>(
          scalar::EncodeWord<scalar::RuleMode::kOther, ExponentRange::kGeneral>(
              lanes, plan, bits, random));
  }
}

// R at the top of a word; 0 where it is not read, since random_bits then means nothing.
uint32_t TopAligned(const EncodePlan& plan, uint32_t random) {
  if (plan.rounding.mode != RoundingMode::kStochastic) return 0;
  return random << (32 - plan.rounding.random_bits);
}

// The float64 equal to a float32, NaN payloads included, by integers alone: a cast would flush
// subnormals where the processor is set to.
uint64_t WidenF32(uint32_t bits) {
  const uint64_t sign = uint64_t{bits >> 31} << 63;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude == 0) return sign;
  if (magnitude >= 0x7F800000u) {
    return sign | 0x7FF0000000000000u | (uint64_t{magnitude & 0x7FFFFFu} << 29);
  }
  if (magnitude >= 0x00800000u) {
    return sign | ((uint64_t{magnitude} << 29) + (uint64_t{1023 - 127} << 52));
  }
  const int top = std::bit_width(magnitude) - 1;  // worth 2^(top - 149)
  const uint64_t mantissa = (uint64_t{magnitude} << (52 - top)) & ((uint64_t{1} << 52) - 1);
  return sign | (static_cast<uint64_t>(top - 149 + 1023) << 52) | mantissa;
}

}  // namespace

uint32_t EncodeF32(const EncodePlan& plan, uint32_t value_bits, uint32_t random) noexcept {
  // The rule needs mantissa bits to cut; a target as precise as the source takes the wider rule.
  const bool wider = plan.mantissa_bits >= scalar::F32Lanes::kMantissaBits;
  if (wider || plan.format.subnormal_shift != 0) {
    return EncodeF64(plan, WidenF32(value_bits), random);
  }
  return EncodeScalar<scalar::F32Lanes>(plan, value_bits, TopAligned(plan, random));
}

uint32_t EncodeF64(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept {
  if (plan.format.subnormal_shift != 0) return EncodeWithHole(plan, value_bits, random);
  return EncodeScalar<scalar::F64Lanes>(plan, value_bits, uint64_t{TopAligned(plan, random)} << 32);
}

uint32_t Encode(const FormatSpec& format,
                float value,
                const Rounding& rounding,
                Overflow overflow,
                uint32_t random) noexcept {
  const EncodePlan plan = MakeEncodePlan(format, rounding, overflow);
  return EncodeF32(plan, std::bit_cast<uint32_t>(value), random);
}

uint32_t Encode(const FormatSpec& format,
                double value,
                const Rounding& rounding,
                Overflow overflow,
                uint32_t random) noexcept {
  const EncodePlan plan = MakeEncodePlan(format, rounding, overflow);
  return EncodeF64(plan, std::bit_cast<uint64_t>(value), random);
}

}  // namespace numsim
