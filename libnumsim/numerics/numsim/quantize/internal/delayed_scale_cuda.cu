// The state of delayed scaling on the device.
#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/quantize/internal/delayed_scale_device.h"
#include "numsim/quantize/internal/delayed_update.h"

namespace numsim {
namespace cuda {
namespace {

constexpr uint32_t kThreads = 256;

__global__ void Record(const float* absmax, float* newest) {
  *newest = LargerMaximum(*absmax, *newest);
}

// The largest entry of a history, and whether an entry is zero.
struct Summary {
  float largest;
  bool has_zero;
};

__device__ Summary Joined(Summary a, Summary b) {
  return {LargerMaximum(a.largest, b.largest), a.has_zero || b.has_zero};
}

// Returns the summary of the block's threads to thread 0.
__device__ Summary SummaryOfBlock(Summary mine) {
  __shared__ Summary of_threads[kThreads];
  of_threads[threadIdx.x] = mine;
  for (uint32_t half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    of_threads[threadIdx.x] = Joined(of_threads[threadIdx.x], of_threads[threadIdx.x + half]);
  }
  return of_threads[0];
}

// One block.
__global__ void __launch_bounds__(kThreads)
    Update(AmaxAlgorithm algorithm, ScaleRule rule, double room, size_t n, float* state) {
  float* const history = state + 2;
  Summary mine = {0, false};
  for (size_t i = threadIdx.x; i < n; i += kThreads) {
    mine = Joined(mine, {history[i], history[i] == 0});
  }
  const Summary all = SummaryOfBlock(mine);
  __shared__ bool sets, advances;
  if (threadIdx.x == 0) {
    sets = algorithm != AmaxAlgorithm::kWindow || !all.has_zero;
    advances = history[0] != 0;
    const float absmax = algorithm == AmaxAlgorithm::kMostRecent ? history[0] : all.largest;
    if (sets && SetsScale(absmax)) {
      state[1] = DelayedInvScale(room, rule, absmax);
      state[0] = 1 / state[1];
    }
  }
  __syncthreads();
  if (sets && algorithm == AmaxAlgorithm::kWindow) {
    for (size_t i = threadIdx.x; i < n; i += kThreads) history[i] = 0;
    return;
  }
  if (!advances) return;
  // Each entry moves forward by one, the newest to the end: the oldest is forgotten.
  const float newest = history[0];
  __syncthreads();
  for (size_t begin = 0; begin < n; begin += kThreads) {
    const size_t i = begin + threadIdx.x;
    const float next = i + 1 < n ? history[i + 1] : newest;
    __syncthreads();
    if (i < n) history[i] = i == 0 ? 0 : next;
    __syncthreads();
  }
}

}  // namespace
}  // namespace cuda

void RecordOnDevice(const float* absmax, float* newest, DeviceStream& stream) {
  cuda::Record<<<1, 1, 0, cuda::Raw(stream)>>>(absmax, newest);
  cuda::CheckLaunch("Record", "one maximum");
}

void UpdateOnDevice(const DelayedScalingOptions& options,
                    double room,
                    float* state,
                    DeviceStream& stream) {
  cuda::Update<<<1, cuda::kThreads, 0, cuda::Raw(stream)>>>(
      options.algorithm, options.rule, room, options.history, state);
  cuda::CheckLaunch("Update", fmt::format("{} maxima", options.history));
}

}  // namespace numsim
