// Kernels of DelayedScale for a state in device memory: scale, inv_scale, then the history.
#pragma once

#include <cstddef>

#include "numsim/backend/device.h"
#include "numsim/quantize/delayed_scale.h"

namespace numsim {

// Replaces *newest by the larger one of *newest and *absmax.
void RecordOnDevice(const float* absmax, float* newest, DeviceStream& stream);

// Does what DelayedScale::Update does.
void UpdateOnDevice(const DelayedScalingOptions& options,
                    double room,
                    float* state,
                    DeviceStream& stream);

}  // namespace numsim
