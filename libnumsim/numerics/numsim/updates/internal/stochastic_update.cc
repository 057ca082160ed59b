// Update rule stochastic: rounds the exact sum stochastically.
#include <charconv>

#include "numsim/base/error.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

class Stochastic final : public ElementwiseMethod {
 public:
  constexpr Stochastic() : ElementwiseMethod({.draws = true, .on_device = true}) {}

  void SetArgument(UpdateRule& rule,
                   std::string_view argument,
                   std::string_view whole) const override {
    int& bits = rule.random_bits;
    const char* const end = argument.data() + argument.size();
    const auto [stop, status] = std::from_chars(argument.data(), end, bits);
    if (status != std::errc() || stop != end || bits < 1 || bits > 32) {
      throw Error::Format(
          "update rule '{}': '{}' is not a number of random bits from 1 to 32", whole, argument);
    }
  }

  std::string ArgumentText(const UpdateRule& rule) const override {
    return rule.random_bits == 32 ? "" : std::to_string(rule.random_bits);
  }

  EncodePlan OwnPlan(const UpdateRule& rule, const FormatSpec& format) const override {
    const Rounding rounding{RoundingMode::kStochastic, StochasticVariant::kA, rule.random_bits};
    return MakeEncodePlan(format, rounding, Overflow::kSaturate);
  }

  uint64_t StepBlock(const UpdateJob& job, ElementRange block, float* after) const override {
    RoundStepSerial(job.own_plan,
                    job.weights.data() + block.begin,
                    job.update.data() + block.begin,
                    job.learning_rate,
                    block.count,
                    after,
                    {job.random, block.begin});
    return job.CountWantedBeyond(block);
  }
};

}  // namespace

const UpdateMethod& StochasticMethod() {
  static constexpr Stochastic kMethod;
  return kMethod;
}

}  // namespace numsim
