// Launches kernels of kernel_blocks.h on a device. Included before the headers of the kernels.
#pragma once

#include <cstddef>
#include <limits>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/backend/shared/kernel_blocks.h"
#include "numsim/base/require.h"

namespace numsim::cuda {

// Env of a thread of the device.
class DeviceBlock {
 public:
  __host__ __device__ unsigned Thread() const {
#ifdef __CUDA_ARCH__
    return threadIdx.x;
#else
    return 0;
#endif
  }
  __host__ __device__ size_t Block() const {
#ifdef __CUDA_ARCH__
    return blockIdx.x;
#else
    return 0;
#endif
  }
  __host__ __device__ void Sync() const {
#ifdef __CUDA_ARCH__
    __syncthreads();
#endif
  }
  template <unsigned kLanes, class T>
  __host__ __device__ T Shuffle(T x, unsigned lane) const {
#ifdef __CUDA_ARCH__
    x = __shfl_sync(Group<kLanes>(), x, static_cast<int>(lane), kLanes);
#endif
    return x;
  }
  template <unsigned kLanes, class T>
  __host__ __device__ T ShuffleXor(T x, unsigned mask) const {
#ifdef __CUDA_ARCH__
    x = __shfl_xor_sync(Group<kLanes>(), x, static_cast<int>(mask), kLanes);
#endif
    return x;
  }
  template <unsigned kLanes, class T>
  __host__ __device__ T ShuffleUp(T x, unsigned distance) const {
#ifdef __CUDA_ARCH__
    x = __shfl_up_sync(Group<kLanes>(), x, distance, kLanes);
#endif
    return x;
  }
  template <unsigned kLanes, class T>
  __host__ __device__ T ShuffleDown(T x, unsigned distance) const {
#ifdef __CUDA_ARCH__
    x = __shfl_down_sync(Group<kLanes>(), x, distance, kLanes);
#endif
    return x;
  }

#ifdef __CUDA_ARCH__
 private:
  // The threads of a warp that take part: the calling thread's group.
  template <unsigned kLanes>
  static __device__ unsigned Group() {
    static_assert(kLanes == 2 || kLanes == 4 || kLanes == 8 || kLanes == 16 || kLanes == 32);
    return (~0u >> (32 - kLanes)) << (threadIdx.x % 32 / kLanes * kLanes);
  }
#endif
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads)
    RunBlock(const __grid_constant__ Kernel kernel) {
  __shared__ typename Kernel::Shared shared;
  DeviceBlock env;
  kernel.Run(env, shared);
}

// Launches blocks of a kernel; none for 0. `name` is what an error calls it.
template <class Kernel>
void LaunchBlocks(const char* name, const Kernel& kernel, size_t blocks, DeviceStream& stream) {
  static_assert(Kernel::kThreads % 32 == 0 && Kernel::kThreads <= 1024);
  if (blocks == 0) return;
  NUMSIM_REQUIRE(blocks <= size_t{std::numeric_limits<int>::max()},
                 "{}: {} blocks of threads, a device runs at most {}",
                 name,
                 blocks,
                 std::numeric_limits<int>::max());
  RunBlock<<<static_cast<unsigned>(blocks), Kernel::kThreads, 0, Raw(stream)>>>(kernel);
  CheckLaunch(name, fmt::format("{} blocks of {} threads", blocks, Kernel::kThreads));
}

// Launches the kernels of one operation on a stream.
struct BlockLauncher {
  const char* name;
  DeviceStream* stream;

  template <class Kernel>
  void operator()(const Kernel& kernel, size_t blocks) const {
    LaunchBlocks(name, kernel, blocks, *stream);
  }
};

}  // namespace numsim::cuda
