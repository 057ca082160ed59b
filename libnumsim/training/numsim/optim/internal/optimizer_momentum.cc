// Optimisers with only a first moment: SGD with heavy-ball momentum [Polyak] and Lion [Lion].
#include "numsim/optim/internal/optimizer_blocks.h"
#include "numsim/optim/optimizer_directions.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/quantize/shared/quantize_simd.h"

namespace numsim {
namespace {

AverageRates Keeping(double beta) {
  const auto keep = static_cast<float>(beta);
  return {keep, 1.0f - keep};
}

class MomentumRule : public OptimizerRule {
 public:
  explicit MomentumRule(size_t size) : size_(size) {}

  std::vector<StateSpec> States() const override { return {{"m", size_, StateRole::kFirstMoment}}; }

 private:
  size_t size_;
};

class SgdRule : public MomentumRule {
 public:
  SgdRule(const OptimizerConfig& config, size_t size)
      : MomentumRule(size), rates_{static_cast<float>(config.beta1), 1} {}

  DirectionSums Step(const RuleStep& step) override {
    return StepInBlocks(
        step,
        [&](const RuleBlock& block) {
          UpdateAverage(block.gradient, block.count, rates_, block.State(0));
          return 0.0;
        },
        [](const RuleBlock& block) {
          Multiply(block.State(0), block.count, -1, block.Direction());
          return 0.0;
        });
  }

 private:
  AverageRates rates_;
};

class LionRule : public MomentumRule {
 public:
  LionRule(const OptimizerConfig& config, size_t size)
      : MomentumRule(size), of_direction_(Keeping(config.beta1)), of_m_(Keeping(config.beta2)) {}

  DirectionSums Step(const RuleStep& step) override {
    return StepInBlocks(step, [&](const RuleBlock& block) {
      float* const m = block.State(0);
      LionDirection(block.gradient, m, block.count, of_direction_, block.Direction());
      UpdateAverage(block.gradient, block.count, of_m_, m);
      return 0.0;
    });
  }

 private:
  AverageRates of_direction_, of_m_;
};

}  // namespace

std::unique_ptr<OptimizerRule> MakeSgd(const OptimizerConfig& config,
                                       const Parameter<float>& parameter) {
  return std::make_unique<SgdRule>(config, parameter.Elements());
}

std::unique_ptr<OptimizerRule> MakeLion(const OptimizerConfig& config,
                                        const Parameter<float>& parameter) {
  return std::make_unique<LionRule>(config, parameter.Elements());
}

}  // namespace numsim
