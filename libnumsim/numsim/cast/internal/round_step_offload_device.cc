#include "numsim/cast/internal/round_step_device.h"
#include "numsim/cast/internal/round_step_offload.h"

namespace numsim {

void RoundStepOffloaded(const EncodePlan& plan,
                        std::span<const float> base,
                        std::span<const float> direction,
                        float factor,
                        std::span<float> out,
                        const ArrayRandom& random) {
  DeviceStream& stream = ThreadStream();
  const DeviceArray<float> device_base = OnDevice(base, stream);
  DeviceArray<float> moved = OnDevice(direction, stream);
  RoundStep(plan, device_base.span(), moved.span(), factor, moved.span(), stream, random);
  CopyToHost(DeviceSpan<const float>(moved.span()), out, stream);
}

}  // namespace numsim
