#include "numsim/profiles/internal/rules.h"
#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim {
namespace {

using scalar::F32Lanes;

// The rounding rule, inlined into the loop. EncodeF32 compiles the same source.
template <RuleMode kMode, ExponentRange kRange>
void RunByRule(const EncodePlan& plan, uint32_t first, uint32_t random, std::span<uint32_t> codes) {
  constexpr F32Lanes lanes;
  const EncodePlan constants = plan;  // a local copy: the stores to `codes` cannot alias it
  for (uint32_t& code : codes) {
    code = scalar::EncodeWord<kMode, kRange>(lanes, constants, first++, random);
  }
}

template <ExponentRange kRange>
void RunByMode(const EncodePlan& plan, uint32_t first, uint32_t random, std::span<uint32_t> codes) {
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return RunByRule<RuleMode::kNearestEven, kRange>(plan, first, 0, codes);
    case RuleMode::kStochastic:
      random <<= 32 - plan.rounding.random_bits;
      return RunByRule<RuleMode::kStochastic, kRange>(plan, first, random, codes);
    case RuleMode::kOther:
      return RunByRule<RuleMode::kOther, kRange>(plan, first, 0, codes);
  }
}

// True if every pattern of the run is converted by the rounding rule over 32-bit words alone.
bool IsPlain(const ConversionRule& rule, uint32_t first, size_t count) {
  const uint32_t magnitude = first & 0x7FFFFFFFu;
  const bool finite = magnitude != 0 && magnitude + (count - 1) < kFloat32Layout.infinity;
  return finite && rule.finite == nullptr && rule.plan.mantissa_bits < 23 &&
         rule.plan.format.subnormal_shift == 0;
}

}  // namespace

void EncodeRun(const ConversionRule& rule,
               uint32_t first,
               uint32_t random,
               std::span<uint32_t> codes) noexcept {
  if (!IsPlain(rule, first, codes.size())) {
    for (uint32_t& code : codes) code = EncodeByRule(rule, first++, random);
    return;
  }
  if (rule.mirrored_random) random = ~random;
  if (rule.ignore_sign) first &= 0x7FFFFFFFu;
  if (rule.plan.range_f32 == ExponentRange::kNarrower) {
    RunByMode<ExponentRange::kNarrower>(rule.plan, first, random, codes);
  } else {
    RunByMode<ExponentRange::kGeneral>(rule.plan, first, random, codes);
  }
}

}  // namespace numsim
