// Update rule kahan: keeps the part of each step that rounding lost.
#include <algorithm>
#include <array>

#include "numsim/base/error.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

class Kahan final : public ElementwiseMethod {
 public:
  constexpr Kahan()
      : ElementwiseMethod({.state = RuleState::kValues, .compensates = true, .on_device = true}) {}

  void SetArgument(UpdateRule& rule, std::string_view argument, std::string_view) const override {
    rule.compensation = ParseFormat(argument);
  }

  std::string ArgumentText(const UpdateRule& rule) const override {
    return rule.compensation ? rule.compensation->name : "";
  }

  void CheckFormat(const UpdateRule& rule, const Format& format) const override {
    const Format& compensation = rule.compensation ? *rule.compensation : format;
    if (compensation.spec.IsSigned() && compensation.spec.zero != Zero::kNone) return;
    throw Error::Format(
        "update rule {}: a compensation in {}, expected a format with a sign and a zero",
        ToString(rule),
        compensation.name);
  }

  EncodePlan OwnPlan(const UpdateRule& rule, const FormatSpec& format) const override {
    return WeightPlan(rule.compensation ? rule.compensation->spec : format);
  }

  double StateBytes(const UpdateRule& rule, const FormatSpec& format) const override {
    return OwnPlan(rule, format).format.Bits() / 8.0;
  }

  void Start(const UpdateStart& start) const override {
    std::ranges::fill(start.state.values.Span(), 0.0f);
    UpdateMethod::Start(start);
  }

  uint64_t StepBlock(const UpdateJob& job, ElementRange block, float* after) const override {
    const size_t n = block.count;
    if (n == 0) return 0;
    const float* const weights = job.weights.data() + block.begin;
    const float* const update = job.update.data() + block.begin;
    float* const compensation = job.state->values.View().data + block.begin;
    const double lr = static_cast<double>(job.learning_rate);
    std::array<double, kSumBlock> before, wanted;
    for (size_t i = 0; i < n; ++i) {
      before[i] = static_cast<double>(weights[i]);
      // The product is exact.
      wanted[i] = static_cast<double>(compensation[i]) + lr * static_cast<double>(update[i]);
    }
    RoundSumSerial(job.plan, before.data(), wanted.data(), n, after);
    for (size_t i = 0; i < n; ++i) wanted[i] -= static_cast<double>(after[i]) - before[i];
    RoundF64Serial(job.own_plan, wanted.data(), n, compensation);
    return job.CountWantedBeyond(block);
  }
};

}  // namespace

const UpdateMethod& KahanMethod() {
  static constexpr Kahan kMethod;
  return kMethod;
}

}  // namespace numsim
