#include "numsim/updates/internal/update_offload.h"
#include "numsim/updates/update_device.h"

namespace numsim {

UpdateOutcome ApplyUpdateOffloaded(const UpdateRule& rule,
                                   const WeightUpdate& step,
                                   RandomStream random,
                                   UpdateState& state,
                                   std::span<float> new_weights) {
  DeviceStream& stream = ThreadStream();
  DeviceArray<float> weights = OnDevice(step.weights, stream);
  const DeviceArray<float> update = OnDevice(step.update, stream);
  DeviceUpdateState device_state{OnDevice(std::span<const float>(state.values), stream),
                                 OnDevice(std::span<const uint16_t>(state.words), stream),
                                 OnDevice(std::span<const float>(state.scales), stream)};
  DeviceUpdateScratch scratch;
  const DeviceWeightUpdate device_step{step.format,
                                       step.rows,
                                       step.cols,
                                       DeviceSpan<const float>(weights.span()),
                                       update.span(),
                                       step.learning_rate,
                                       step.weight_decay};
  const UpdateOutcome outcome =
      ApplyUpdate(rule, device_step, random, device_state, weights.span(), scratch, stream);
  CopyToHost(DeviceSpan<const float>(weights.span()), new_weights, stream);
  CopyToHost(DeviceSpan<const float>(device_state.values.span()), std::span(state.values), stream);
  CopyToHost(DeviceSpan<const uint16_t>(device_state.words.span()), std::span(state.words), stream);
  return outcome;
}

}  // namespace numsim
