// Weight-update rules (update_rule.h) on the device, with the same bits, states and outcomes as on
// the CPU.
//
// The device has naive, stochastic, master-fp32, split-master, kahan, and norm-matched and
// projection-matched with one alpha per tensor, for weights of formats that HasStepRule
// (cast/shared/round_step_rule.h) accepts. Under backend cuda, ApplyUpdate of update_rule.h runs
// these rules on the device and all others on the CPU.
//
// One field of the outcome differs: after a matched step, `passes` counts the device's own passes
// over all weights. UpdateRule::solver does not affect them. They measure only the cost and depend
// only on the arguments.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

// Throws Error, which says what the device has, if the device does not have the rule for weights of
// that format.
void CheckOnDevice(const UpdateRule& rule, const FormatSpec& format);

// The input of one step, with the fields of WeightUpdate.
struct DeviceWeightUpdate {
  FormatSpec format = {};
  size_t rows = 1, cols = 0;
  DeviceSpan<const float> weights = {};
  DeviceSpan<const float> update = {};
  float learning_rate = 0;
  float weight_decay = 0;
};

// UpdateState on the device.
struct DeviceUpdateState {
  DeviceArray<float> values;
  DeviceArray<uint16_t> words;
  DeviceArray<float> scales;
};

// Working memory of the rules, kept between calls: about 4 bytes per weight for matched steps, 4
// more with weight decay, otherwise next to nothing.
struct DeviceUpdateScratch {
  DeviceArray<uint8_t> bytes;
};

// Does what ApplyUpdate of update_rule.h does: for the same arguments it gives the same new
// weights, state and outcome, except `passes`. Waits for the result. Requires a rule that
// CheckOnDevice accepts.
UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const DeviceWeightUpdate& step,
                          RandomStream random,
                          DeviceUpdateState& state,
                          DeviceSpan<float> new_weights,
                          DeviceUpdateScratch& scratch,
                          DeviceStream& stream);

}  // namespace numsim
