#include "numsim/cast/shared/round_step_rule.h"

#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/shared/decode_range.h"

namespace numsim {

bool HasStepRule(const EncodePlan& plan) {
  const FormatSpec& format = plan.format;
  const bool stochastic = plan.rounding.mode == RoundingMode::kStochastic;
  // Rounding to odd first needs two bits more than the final rounding looks at.
  const int bits = format.mantissa_bits + 1 + 2 + (stochastic ? plan.rounding.random_bits : 0);
  return bits <= 53 && (DecodesInLanes(format) || format == kFp32);
}

StepRule MakeStepRule(const EncodePlan& plan) {
  NUMSIM_CHECK(HasStepRule(plan), "a format of {} bits", plan.format.Bits());
  StepRule rule;
  rule.plan = plan;
  const std::optional<NearestGrid> grid = MakeNearestGrid(plan);
  if (grid) {
    rule.grid = *grid;
    rule.path = StepPath::kGrid;
    return rule;
  }
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      rule.path = StepPath::kNearest;
      break;
    case RuleMode::kStochastic:
      rule.path = StepPath::kStochastic;
      break;
    case RuleMode::kOther:
      rule.path = StepPath::kOther;
      break;
  }
  return rule;
}

}  // namespace numsim
