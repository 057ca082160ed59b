#include "numsim/backend/device_context.h"
#include "numsim/updates/internal/update_on_device.h"

namespace numsim {

UpdateOutcome ApplyUpdateOffloaded(const UpdateRule& rule,
                                   const WeightUpdate& step,
                                   RandomStream random,
                                   UpdateState& state,
                                   MatrixSpan<float> new_weights) {
  const Place place = ThreadPlace();
  Buffer<float> weights = CopyAt(step.weights, place);
  const Buffer<float> update = CopyAt(step.update, place);
  UpdateState state_there = state.CopiedTo(place);
  WeightUpdate step_there = step;
  step_there.weights = weights.View();
  step_there.update = update.View();
  const UpdateOutcome outcome =
      ApplyUpdateOnDevice(rule, step_there, random, state_there, weights.View());
  CopyMatrix<float>(weights.View(), new_weights);
  CopyMatrix<float>(state_there.values.View(), state.values.View());
  CopyMatrix<uint16_t>(state_there.words.View(), state.words.View());
  return outcome;
}

}  // namespace numsim
