// Weight-update rules (update_rule.h) on the device: the same rules, bits, states and outcomes.
//
// The device has naive, stochastic, master-fp32, split-master and kahan, and norm-matched and
// projection-matched with one alpha for the tensor, for weights of formats that HasStepRule
// (cast/shared/round_step_rule.h) accepts. Under the backend cuda the ApplyUpdate of update_rule.h runs
// these rules on the device and all others on the CPU.
//
// `passes` of a matched step counts the device's own passes over all weights, which are not the
// CPU's: a solver has no say in them, and of two steps with the same outcome they tell nothing but
// the cost. They depend on the arguments alone.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

// Throws Error that says which rules the device has.
void CheckOnDevice(const UpdateRule& rule, const FormatSpec& format);

// One step to take, as WeightUpdate.
struct DeviceWeightUpdate {
  FormatSpec format;
  size_t rows = 1, cols = 0;
  DeviceSpan<const float> weights;
  DeviceSpan<const float> update;
  float learning_rate = 0;
  float weight_decay = 0;
};

// UpdateState on the device.
struct DeviceUpdateState {
  DeviceArray<float> values;
  DeviceArray<uint16_t> words;
  DeviceArray<float> scales;
};

// Memory of the rules; keeps what it had. About 4 bytes a weight for matched steps, 4 more with
// weight decay, else next to nothing.
struct DeviceUpdateScratch {
  DeviceArray<uint8_t> bytes;
};

// As ApplyUpdate of update_rule.h, for the same arguments the same new weights, state and outcome.
// Waits for the result. Requires a rule that CheckOnDevice accepts.
UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const DeviceWeightUpdate& step,
                          RandomStream random,
                          DeviceUpdateState& state,
                          DeviceSpan<float> new_weights,
                          DeviceUpdateScratch& scratch,
                          DeviceStream& stream);

}  // namespace numsim
