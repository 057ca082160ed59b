#include "numsim/backend/device_context.h"
#include "numsim/backend/shared/launch_threads_cuda.cuh"
#include "numsim/optim/internal/optimizer_runner.h"

namespace numsim {
namespace {

struct LaunchOnDevice {
  DeviceStream* stream;

  template <class Kernel>
  void operator()(const Kernel& kernel, size_t threads) const {
    cuda::LaunchThreads("a step of an optimiser", kernel, threads, *stream);
  }
};

}  // namespace

std::unique_ptr<KernelRunner> MakeDeviceRunner(Place place) {
  return std::make_unique<LaunchingRunner<LaunchOnDevice>>(LaunchOnDevice{&place.Stream()});
}

}  // namespace numsim
