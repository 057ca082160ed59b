// AdamW [AdamW] and StableAdamW, Algorithm 2 of [SwitchBack].
#include <array>

#include "numsim/base/elementary.h"
#include "numsim/optim/internal/optimizer_blocks.h"
#include "numsim/optim/optimizer_directions.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/updates/shared/decay_update.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

AverageRates Keeping(float keep) { return {keep, 1.0f - keep}; }

// The coefficients of one step.
struct AdamRates {
  AverageRates m, v;
  float m_correction = 1;
  AdamDenominator denominator, previous;  // for this step's v, for the previous step's v
};

class AdamRule : public OptimizerRule {
 public:
  // `stable`: the averages are stored with their bias corrected (StableAdamW).
  AdamRule(const OptimizerConfig& config, size_t size, bool stable)
      : config_(config),
        size_(size),
        stable_(stable),
        beta1_(static_cast<float>(config.beta1)),
        beta2_(static_cast<float>(config.beta2)) {}

  std::vector<StateSpec> States() const override {
    return {{"m", size_, StateRole::kFirstMoment}, {"v", size_, StateRole::kSecondMoment}};
  }

  DirectionSums Step(const RuleStep& step) override {
    const AdamRates rates = RatesOf(step);
    return StepInBlocks(
        step,
        [&](const RuleBlock& block) { return Advance(rates, block); },
        [&](const RuleBlock& block) { return Direct(rates, block); });
  }

 private:
  AdamRates RatesOf(const RuleStep& step) const;
  double Advance(const AdamRates& rates, const RuleBlock& block) const;
  double Direct(const AdamRates& rates, const RuleBlock& block) const;
  double RatioSquare(const float* numerator,
                     const AdamDenominator& denominator,
                     const RuleBlock& block) const;

  const OptimizerConfig& config_;
  size_t size_;
  bool stable_;
  // Members, not locals of RatesOf: when g++ 12 packs two neighbours into a vector
  // (-ftree-slp-vectorize), it drops their conversion float64 -> float32 -> float64.
  float beta1_, beta2_;
};

AdamRates AdamRule::RatesOf(const RuleStep& step) const {
  const double before1 = 1 - step.before.power1, before2 = 1 - step.before.power2;
  const double after1 = 1 - step.now.power1, after2 = 1 - step.now.power2;
  AdamRates rates;
  rates.denominator.epsilon = rates.previous.epsilon = static_cast<float>(config_.epsilon);
  if (stable_) {
    rates.m = Keeping(static_cast<float>(static_cast<double>(beta1_) * before1 / after1));
    rates.v = Keeping(static_cast<float>(static_cast<double>(beta2_) * before2 / after2));
  } else {
    rates.m = Keeping(beta1_);
    rates.v = Keeping(beta2_);
    rates.m_correction = static_cast<float>(after1);
    rates.denominator.correction = static_cast<float>(after2);
    // Before the first step v is zero, and so is v / 1.
    rates.previous.correction = step.before.steps == 0 ? 1 : static_cast<float>(before2);
  }
  if (config_.beta2_decay > 0) {
    // Both weights are rounded from the float64 t^-lambda, not `share` as 1 - keep: the rounding
    // error of `share` matters more than that of `keep`.
    const double share = Exp(-config_.beta2_decay * Log(static_cast<double>(step.now.steps)));
    rates.v = {static_cast<float>(1 - share), static_cast<float>(share)};
    rates.denominator.correction = rates.previous.correction = 1;
  }
  return rates;
}

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
