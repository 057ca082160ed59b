// Update rule master-fp32: keeps the weights a second time, in float32.
#include <algorithm>
#include <cmath>
#include <limits>

#include "numsim/cast/cast.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/named_formats.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

class MasterFp32 final : public ElementwiseMethod {
 public:
  constexpr MasterFp32() : ElementwiseMethod({.state = RuleState::kValues, .on_device = true}) {}

  void Start(const UpdateStart& start) const override {
    FakeQuantize(WeightPlan(kFp32), start.initial, start.state.values.Span());
    UpdateMethod::Start(start);
  }

  void LoadWeights(const KeptWeights& kept, ElementRange block, double* out) const override {
    const float* const master = kept.state.values.View().data + block.begin;
    for (size_t i = 0; i < block.count; ++i) out[i] = static_cast<double>(master[i]);
  }

  uint64_t StepBlock(const UpdateJob& job, ElementRange block, float* after) const override {
    const float* const update = job.update.data() + block.begin;
    float* const master = job.state->values.View().data + block.begin;
    const float lr = job.learning_rate;
    uint64_t saturated = 0;
    constexpr float kGreatest = std::numeric_limits<float>::max();
    for (size_t i = 0; i < block.count; ++i) {
      master[i] = std::clamp(master[i] + lr * update[i], -kGreatest, kGreatest);
      saturated += std::abs(master[i]) > job.largest ? 1 : 0;
    }
    FakeQuantizeSerial(job.plan, master, block.count, after, {});
    return saturated;
  }
};

}  // namespace

const UpdateMethod& MasterFp32Method() {
  static constexpr MasterFp32 kMethod;
  return kMethod;
}

}  // namespace numsim
