#include "numsim/cast/shared/round_step_rule.h"

#include <bit>
#include <optional>

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

namespace {

// Returns the grid of the plan's format if Float64OnGrid and NearestOnGrid serve the plan.
std::optional<NearestGrid> GridOf(const EncodePlan& plan) {
  constexpr int kMostMantissaBits = 18;  // the upper word has two more, for what lies below
  const bool stochastic = plan.rounding.mode == RoundingMode::kStochastic;
  if (plan.format.mantissa_bits > kMostMantissaBits) return std::nullopt;
  if (!stochastic) return MakeNearestGrid(plan);
  if (plan.rounding.variant != StochasticVariant::kA) return std::nullopt;
  return MakeNearestGrid(MakeEncodePlan(plan.format, {}, plan.overflow));
}

UpperWordGrid UpperWordsOf(const NearestGrid& grid, const EncodePlan& plan) {
  UpperWordGrid upper;
  const auto least = std::bit_cast<uint64_t>(static_cast<double>(grid.min_normal));
  upper.least_normal = static_cast<uint32_t>(least >> 32);
  upper.fraction = (1u << (20 - plan.format.mantissa_bits)) - 1;
  if (plan.rounding.mode == RoundingMode::kStochastic) {
    upper.random_shift = 52 - plan.format.mantissa_bits - plan.rounding.random_bits;
  }
  return upper;
}

}  // namespace

StepRule MakeStepRule(const EncodePlan& plan) {
  NUMSIM_CHECK(HasStepRule(plan), "a format of {} bits", plan.format.Bits());
  StepRule rule;
  rule.plan = plan;
  const bool stochastic = plan.rounding.mode == RoundingMode::kStochastic;
  if (const std::optional<NearestGrid> grid = GridOf(plan)) {
    rule.grid = *grid;
    rule.upper = UpperWordsOf(*grid, plan);
    rule.path = stochastic ? StepPath::kStochasticGrid : StepPath::kGrid;
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
