#include "numsim/rounding/shared/subnormal_gap.h"

namespace numsim {

SubnormalGapPlans MakeSubnormalGapPlans(const EncodePlan& plan) noexcept {
  FormatSpec below = plan.format;
  below.bias = static_cast<int16_t>(below.bias + below.subnormal_shift);
  below.subnormal_shift = 0;
  FormatSpec above = plan.format;
  above.subnormal_shift = 0;
  return {MakeEncodePlan(below, plan.rounding, plan.overflow),
          MakeEncodePlan(above, plan.rounding, plan.overflow)};
}

uint32_t EncodeWithSubnormalGap(const EncodePlan& plan,
                                uint64_t value_bits,
                                uint32_t random) noexcept {
  return scalar::EncodeWithSubnormalGap(plan, MakeSubnormalGapPlans(plan), value_bits, random);
}

}  // namespace numsim
