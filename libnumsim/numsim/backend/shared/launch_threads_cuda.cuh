// Launches kernels of kernel_threads.h on a device. Included before the headers of the kernels.
#pragma once

#define NUMSIM_UNROLL _Pragma("unroll")
#define NUMSIM_ROLL _Pragma("unroll 1")

#include <cstddef>
#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/backend/shared/directed_sums_cuda.cuh"

namespace numsim::cuda {

// Env of a thread of the device.
struct DeviceThreads {
  // Most threads find the final value already there.
  static __host__ __device__ void RaiseTo(uint32_t* p, uint32_t x) {
#ifdef __CUDA_ARCH__
    if (x > *static_cast<volatile uint32_t*>(p)) atomicMax(p, x);
#endif
  }
  static __host__ __device__ void LowerTo(uint32_t* p, uint32_t x) {
#ifdef __CUDA_ARCH__
    if (x < *static_cast<volatile uint32_t*>(p)) atomicMin(p, x);
#endif
  }
  static __host__ __device__ void FlipBits(uint32_t* p, uint32_t x) {
#ifdef __CUDA_ARCH__
    atomicXor(p, x);
#endif
  }
};

template <int kThreads, class Kernel>
__global__ void __launch_bounds__(kThreads)
    RunKernel(const __grid_constant__ Kernel kernel, size_t threads) {
  const size_t thread = static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (thread < threads) kernel.template Run<DeviceThreads>(thread);
}

// Launches the threads of a kernel; none for 0.
template <int kThreads = 128, class Kernel>
void LaunchThreads(const char* name, const Kernel& kernel, size_t threads, DeviceStream& stream) {
  if (threads == 0) return;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  RunKernel<kThreads><<<blocks, kThreads, 0, Raw(stream)>>>(kernel, threads);
  CheckLaunch(name, fmt::format("{} threads", threads));
}

}  // namespace numsim::cuda
