#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/backend/shared/launch_threads_cuda.cuh"
#include "numsim/moments/internal/moment_passes_device.h"

namespace numsim::cuda {
namespace {

// Waits, and returns the loss of what was stored last.
MomentLoss MeasureLoss(const MomentArguments& at, Place place) {
  const size_t parts = (at.n + kMomentLossPart - 1) / kMomentLossPart;
  Buffer<uint8_t> memory(place, parts * sizeof(MomentLoss));
  auto* const losses = reinterpret_cast<MomentLoss*>(memory.View().data);
  LaunchThreads("loss of moments", MomentLossKernel{at, losses}, parts, place.Stream());
  MomentLoss total;
  for (const MomentLoss& part : device_memory::Fetch(losses, parts, place.Stream())) total += part;
  return total;
}

}  // namespace

void LoadMoment(const MomentArguments& at, DeviceStream& stream) {
  const size_t threads = (at.n + kMomentRun - 1) / kMomentRun;
  LaunchThreads("loading moments", LoadMomentKernel{at}, threads, stream);
}

MomentLoss StoreMoment(const MomentArguments& at, size_t scales, bool measure, Place place) {
  const auto run = [&](const auto& kernel, size_t threads) {
    LaunchThreads("storing moments", kernel, threads, place.Stream());
  };
  numsim::StoreMoment(run, at, scales);
  return measure ? MeasureLoss(at, place) : MomentLoss{};
}

}  // namespace numsim::cuda
