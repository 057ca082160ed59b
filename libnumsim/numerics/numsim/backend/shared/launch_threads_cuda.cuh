// Launches kernels of kernel_threads.h on a device. Included before the headers of the kernels.
#pragma once

#define NUMSIM_UNROLL _Pragma("unroll")
#define NUMSIM_UNROLL_2 _Pragma("unroll 2")
#define NUMSIM_ROLL _Pragma("unroll 1")

#include <bit>
#include <cstddef>
#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/backend/shared/directed_sums_cuda.cuh"

namespace numsim::cuda {

// Env of a thread of the device.
struct DeviceThreads {
  static constexpr bool kConvertsFp8 = true;
  static __host__ __device__ void DecodeFp8(uint32_t word, bool e5m2, float (&values)[4]) {
#ifdef __CUDA_ARCH__
    uint32_t low, high;  // pairs of fp16
    if (e5m2) {
      low = (word & 0xFFu) << 8 | (word & 0xFF00u) << 16;  // e5m2 is the upper half of fp16
      high = (word >> 16 & 0xFFu) << 8 | (word & 0xFF000000u);
    } else {
      const auto first = static_cast<uint16_t>(word), second = static_cast<uint16_t>(word >> 16);
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(low) : "h"(first));
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(high) : "h"(second));
    }
    const auto convert = [](uint32_t pair, float& a, float& b) {
      asm("{ .reg .f16 x, y; mov.b32 {x, y}, %2; cvt.f32.f16 %0, x; cvt.f32.f16 %1, y; }"
          : "=f"(a), "=f"(b)
          : "r"(pair));
    };
    convert(low, values[0], values[1]);
    convert(high, values[2], values[3]);
#endif
  }
  static __host__ __device__ uint32_t EncodeFp8(const float (&values)[4], bool e5m2) {
    uint32_t word = 0;
#ifdef __CUDA_ARCH__
    uint16_t low, high;
    if (e5m2) {
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(low) : "f"(values[1]), "f"(values[0]));
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(high) : "f"(values[3]), "f"(values[2]));
    } else {
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(values[1]), "f"(values[0]));
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(values[3]), "f"(values[2]));
    }
    word = low | static_cast<uint32_t>(high) << 16;
#endif
    return word;
  }
  // Most threads find the final value already there.
  static __host__ __device__ void RaiseTo(uint32_t* p, uint32_t x) {
#ifdef __CUDA_ARCH__
    if (x > *static_cast<volatile uint32_t*>(p)) atomicMax(p, x);
#endif
  }
  static __host__ __device__ void RaiseToTogether(uint32_t* p, uint32_t x) {
#ifdef __CUDA_ARCH__
    const uint32_t most = __reduce_max_sync(~0u, x);
    if (most != 0 && x == most) RaiseTo(p, x);
#endif
  }
  static constexpr unsigned kTogether = 32;
  static __host__ __device__ uint32_t MostTogether(uint32_t x) {
#ifdef __CUDA_ARCH__
    x = __reduce_max_sync(~0u, x);
#endif
    return x;
  }
  // Even threads make the first result, odd ones the second.
  template <class Make, class Result>
  static __host__ __device__ void EachOfTwo(const Make& make, Result (&results)[2]) {
#ifdef __CUDA_ARCH__
    const Result own = make(static_cast<int>(threadIdx.x % 2));
#pragma unroll
    for (int s = 0; s < 2; ++s) results[s] = OfThread(own, s);
#endif
  }
#ifdef __CUDA_ARCH__
  // Returns the x of a thread of those that act together.
  template <class T>
  static __device__ T OfThread(const T& x, int thread) {
    struct Words {
      uint32_t of[sizeof(T) / sizeof(uint32_t)];
    };
    Words words = std::bit_cast<Words>(x);
#pragma unroll
    for (uint32_t& word : words.of) word = __shfl_sync(~0u, word, thread);
    return std::bit_cast<T>(words);
  }
#endif
  // The steps of the compiler's own division and square root, without its look at special cases.
  static __host__ __device__ float DivModerate(float a, float b) {
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
    inverse = fmaf(fmaf(-b, inverse, 1.0f), inverse, inverse);
    float q = a * inverse;
    q = fmaf(fmaf(-b, q, a), inverse, q);
    return fmaf(fmaf(-b, q, a), inverse, q);
#else
    return a / b;
#endif
  }
  static __host__ __device__ float SqrtModerate(float a) {
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(a));
    const float root = a * inverse;
    return fmaf(fmaf(-root, root, a), inverse * 0.5f, root);
#else
    return sqrtf(a);
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

// The blocks of threads for which a multiprocessor must have registers at once.
template <class Kernel>
constexpr int BlocksTogether() {
  if constexpr (requires { Kernel::kBlocksTogether; }) return Kernel::kBlocksTogether;
  return 1;
}

template <int kThreads, class Kernel>
__global__ void __launch_bounds__(kThreads, BlocksTogether<Kernel>())
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
