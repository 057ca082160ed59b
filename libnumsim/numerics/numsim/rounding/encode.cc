#include "numsim/rounding/encode.h"

#include <bit>

#include "numsim/rounding/shared/encode_scalar.h"
#include "numsim/rounding/shared/subnormal_gap.h"
#include "numsim/rounding/shared/table_rule.h"

namespace numsim {

uint32_t EncodeF32(const EncodePlan& plan, uint32_t value_bits, uint32_t random) noexcept {
  if (scalar::NeedsWideWords(plan) || plan.format.IsTable()) {
    return EncodeF64(plan, scalar::WidenF32(value_bits), random);
  }
  return scalar::EncodeGeneral<scalar::F32Lanes>(
      plan, value_bits, scalar::TopAligned(plan, random));
}

uint32_t EncodeF64(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept {
  if (plan.format.IsTable()) return table_rule::EncodeF64(plan, value_bits, random);
  if (plan.format.subnormal_shift != 0) return EncodeWithSubnormalGap(plan, value_bits, random);
  return scalar::EncodeWide(plan, value_bits, random);
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
