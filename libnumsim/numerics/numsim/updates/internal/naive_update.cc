// Update rule naive: one rounding, no state.
#include "numsim/cast/shared/round_step.h"
#include "numsim/formats/named_formats.h"
#include "numsim/updates/internal/naive_step.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

class Naive final : public ElementwiseMethod {
 public:
  constexpr Naive() : ElementwiseMethod({.tells_if_nothing_moved = true, .on_device = true}) {}

  // The most common step: of float32 weights in place.
  std::optional<UpdateOutcome> TakeInPlace(const WeightUpdate& step,
                                           std::span<float> weights) const override {
    if (step.format != kFp32) return std::nullopt;
    return TakeNaiveStep(step.update.Span(), step.learning_rate, step.weight_decay, weights);
  }

  uint64_t StepBlock(const UpdateJob& job, ElementRange block, float* after) const override {
    RoundFloatStepSerial(job.plan,
                         job.weights.data() + block.begin,
                         job.update.data() + block.begin,
                         job.learning_rate,
                         block.count,
                         after);
    return job.CountWantedBeyond(block);
  }
};

}  // namespace

const UpdateMethod& NaiveMethod() {
  static constexpr Naive kMethod;
  return kMethod;
}

}  // namespace numsim
