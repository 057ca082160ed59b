// AdamW [AdamW] and StableAdamW, Algorithm 2 of [SwitchBack].
#include <array>

#include "numsim/optim/internal/adam_rates.h"
#include "numsim/optim/internal/optimizer_blocks.h"
#include "numsim/optim/optimizer_directions.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/updates/shared/decay_update.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

class AdamRule : public OptimizerRule {
 public:
  // `stable`: the averages are stored with their bias corrected (StableAdamW).
  AdamRule(const OptimizerConfig& config, size_t size, bool stable)
      : config_(config),
        size_(size),
        constants_{stable,
                   static_cast<float>(config.beta1),
                   static_cast<float>(config.beta2),
                   static_cast<float>(config.epsilon),
                   config.beta2_decay} {}

  std::vector<StateSpec> States() const override {
    return {{"m", size_, StateRole::kFirstMoment}, {"v", size_, StateRole::kSecondMoment}};
  }

  DirectionSums Step(const RuleStep& step) override {
    const AdamRates rates = AdamRatesOf(constants_, step.before, step.now);
    return StepInBlocks(
        step,
        [&](const RuleBlock& block) { return Advance(rates, block); },
        [&](const RuleBlock& block) { return Direct(rates, block); });
  }

 private:
  double Advance(const AdamRates& rates, const RuleBlock& block) const;
  double Direct(const AdamRates& rates, const RuleBlock& block) const;
  double RatioSquare(const float* numerator,
                     const AdamDenominator& denominator,
                     const RuleBlock& block) const;

  const OptimizerConfig& config_;
  size_t size_;
  AdamConstants constants_;
};

double AdamRule::Advance(const AdamRates& rates, const RuleBlock& block) const {
  const bool before = config_.stable.previous_u && !config_.stable.of_update;
  const double ratio_square = before ? RatioSquare(block.gradient, rates.previous, block) : 0;
  UpdateSquareAverage(block.gradient, block.count, rates.v, block.State(1));
  UpdateAverage(block.gradient, block.count, rates.m, block.State(0));
  return ratio_square;
}

double AdamRule::Direct(const AdamRates& rates, const RuleBlock& block) const {
  const float *const m = block.State(0), *const v = block.State(1);
  float* const direction = block.Direction();
  AdamDirection(m, v, block.count, rates.m_correction, rates.denominator, direction);
  if (config_.stable.of_update) {
    alignas(64) std::array<float, kSumBlock> decayed;
    DecayUpdate(direction, block.Weights(), block.count, block.step.weight_decay, decayed.data());
    return SquaredSumOfBlock(decayed.data(), block.count);
  }
  if (config_.stable.of_moment) {
    const double correction = static_cast<double>(rates.m_correction);
    return RatioSquare(m, rates.denominator, block) / (correction * correction);
  }
  return config_.stable.previous_u ? 0 : RatioSquare(block.gradient, rates.denominator, block);
}

// Returns the sum of squares behind RMS, computed with the current contents of v.
double AdamRule::RatioSquare(const float* numerator,
                             const AdamDenominator& denominator,
                             const RuleBlock& block) const {
  alignas(64) std::array<float, kSumBlock> ratios;
  GradientRatios(numerator,
                 block.State(1),
                 block.count,
                 denominator,
                 config_.stable.epsilon_added,
                 ratios.data());
  return SquaredSumOfBlock(ratios.data(), block.count);
}

}  // namespace

std::unique_ptr<OptimizerRule> MakeAdamW(const OptimizerConfig& config,
                                         const Parameter<float>& parameter) {
  return std::make_unique<AdamRule>(config, parameter.Elements(), false);
}

std::unique_ptr<OptimizerRule> MakeStableAdamW(const OptimizerConfig& config,
                                               const Parameter<float>& parameter) {
  return std::make_unique<AdamRule>(config, parameter.Elements(), true);
}

}  // namespace numsim
