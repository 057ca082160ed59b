// Loading and storing moments on the device, after the checks of moment_store.cc.
#pragma once

#include "numsim/backend/matrix.h"
#include "numsim/moments/shared/moment_kernels.h"

namespace numsim::cuda {

void LoadMoment(const MomentArguments& at, DeviceStream& stream);
// Stores at.values. Waits if `measure` is true.
MomentLoss StoreMoment(const MomentArguments& at, size_t scales, bool measure, Place place);

}  // namespace numsim::cuda
