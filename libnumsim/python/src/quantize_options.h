// Options of a quantisation from what Python gives.
#pragma once

#include <string_view>

#include "numsim/quantize/quantized_matrix.h"

namespace numsim::python {

// Returns the options of codes of plan.format. Throws Error for another layout or rule.
inline QuantizeOptions OptionsOf(const EncodePlan& plan,
                                 std::string_view layout,
                                 std::string_view rule,
                                 const ArrayRandom& random) {
  return {.format = plan.format,
          .rounding = plan.rounding,
          .overflow = plan.overflow,
          .layout = ParseScaleLayout(layout),
          .scale_rule = ParseScaleRule(rule),
          .random = random};
}

}  // namespace numsim::python
