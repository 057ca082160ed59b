// Records CUDA's own conversions of all 2^32 float32 patterns to 8, 6 and 4 bits, on device and
// host.
//   nvcc -O2 -std=c++17 -arch=sm_90 record_cuda.cu -o record_cuda && ./record_cuda DIR
// Writes DIR/cuda-device.txt and DIR/cuda-host.txt, in the format that README.md describes.
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct E4m3Nosat {
  static constexpr const char* kName = "e4m3fn nosat";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3);
  }
};
struct E4m3Satfinite {
  static constexpr const char* kName = "e4m3fn satfinite";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
  }
};
struct E5m2Nosat {
  static constexpr const char* kName = "e5m2 nosat";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E5M2);
  }
};
struct E5m2Satfinite {
  static constexpr const char* kName = "e5m2 satfinite";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
  }
};
template <__nv_saturation_t kSaturation, cudaRoundMode kMode>
struct E8m0 {
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_e8m0(x, kSaturation, kMode);
  }
};
struct E8m0ZeroSat : E8m0<__NV_SATFINITE, cudaRoundZero> {
  static constexpr const char* kName = "e8m0fnu rz satfinite";
};
struct E8m0ZeroNosat : E8m0<__NV_NOSAT, cudaRoundZero> {
  static constexpr const char* kName = "e8m0fnu rz nosat";
};
struct E8m0UpSat : E8m0<__NV_SATFINITE, cudaRoundPosInf> {
  static constexpr const char* kName = "e8m0fnu rp satfinite";
};
struct E8m0UpNosat : E8m0<__NV_NOSAT, cudaRoundPosInf> {
  static constexpr const char* kName = "e8m0fnu rp nosat";
};
struct E2m3 {
  static constexpr const char* kName = "e2m3fn";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp6(x, __NV_E2M3, cudaRoundNearest);
  }
};
struct E3m2 {
  static constexpr const char* kName = "e3m2fn";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp6(x, __NV_E3M2, cudaRoundNearest);
  }
};
struct E2m1 {
  static constexpr const char* kName = "e2m1fn";
  __host__ __device__ static uint8_t Convert(float x) {
    return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest);
  }
};

template <class C>
__host__ __device__ uint8_t CodeOf(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return C::Convert(__uint_as_float(bits));
#else
  float x;
  memcpy(&x, &bits, 4);
  return C::Convert(x);
#endif
}

constexpr uint32_t kCapacity = 1 << 20;

// Every pattern whose code differs from that of the pattern before.
template <class C>
__global__ void FindStarts(uint32_t* count, uint32_t* starts, uint8_t* codes) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < (uint64_t{1} << 32);
       i += stride) {
    const uint32_t bits = static_cast<uint32_t>(i);
    const uint8_t code = CodeOf<C>(bits);
    if (i != 0 && code == CodeOf<C>(bits - 1)) continue;
    const uint32_t slot = atomicAdd(count, 1u);
    if (slot < kCapacity) {
      starts[slot] = bits;
      codes[slot] = code;
    }
  }
}

using Runs = std::vector<std::pair<uint32_t, uint8_t>>;

template <class C>
Runs DeviceRuns() {
  uint32_t *count, *starts;
  uint8_t* codes;
  cudaMalloc(&count, 4);
  cudaMalloc(&starts, kCapacity * 4);
  cudaMalloc(&codes, kCapacity);
  cudaMemset(count, 0, 4);
  FindStarts<C><<<132 * 8, 256>>>(count, starts, codes);
  uint32_t n = 0;
  cudaMemcpy(&n, count, 4, cudaMemcpyDeviceToHost);
  if (cudaGetLastError() != cudaSuccess || n == 0 || n > kCapacity) {
    std::fprintf(stderr, "%s: %u runs\n", C::kName, n);
    std::exit(1);
  }
  std::vector<uint32_t> s(n);
  std::vector<uint8_t> c(n);
  cudaMemcpy(s.data(), starts, n * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(c.data(), codes, n, cudaMemcpyDeviceToHost);
  cudaFree(count);
  cudaFree(starts);
  cudaFree(codes);
  Runs runs(n);
  for (uint32_t i = 0; i < n; ++i) runs[i] = {s[i], c[i]};
  std::sort(runs.begin(), runs.end());
  return runs;
}

template <class C>
Runs HostRuns() {
  constexpr int kChunks = 4096;
  std::vector<Runs> parts(kChunks);
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int chunk = next++; chunk < kChunks; chunk = next++) {
      const uint32_t begin = static_cast<uint32_t>(chunk) << 20;
      uint8_t before = begin == 0 ? 0 : CodeOf<C>(begin - 1);
      for (uint32_t i = 0; i < (1u << 20); ++i) {
        const uint8_t code = CodeOf<C>(begin + i);
        if (code != before || begin + i == 0) parts[chunk].push_back({begin + i, code});
        before = code;
      }
    }
  };
  std::vector<std::thread> threads(std::thread::hardware_concurrency());
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  Runs runs;
  for (const Runs& part : parts) runs.insert(runs.end(), part.begin(), part.end());
  return runs;
}

void Write(FILE* file, const char* name, const Runs& runs) {
  std::fprintf(file, "conversion %s\n", name);
  for (const auto& [start, code] : runs) std::fprintf(file, "%08X %02X\n", start, code);
}

template <class... C>
void Record(const std::string& directory) {
  FILE* device = std::fopen((directory + "/cuda-device.txt").c_str(), "w");
  FILE* host = std::fopen((directory + "/cuda-host.txt").c_str(), "w");
  if (device == nullptr || host == nullptr) std::exit(1);
  int driver = 0;
  cudaDriverGetVersion(&driver);
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  std::fprintf(device,
               "# CUDA toolkit %d.%d, driver API %d, device code on %s\n",
               CUDART_VERSION / 1000,
               CUDART_VERSION % 1000 / 10,
               driver,
               properties.name);
  std::fprintf(host,
               "# CUDA toolkit %d.%d, host code of the headers\n",
               CUDART_VERSION / 1000,
               CUDART_VERSION % 1000 / 10);
  (Write(device, C::kName, DeviceRuns<C>()), ...);
  (Write(host, C::kName, HostRuns<C>()), ...);
  std::fclose(device);
  std::fclose(host);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Record<E4m3Nosat,
         E4m3Satfinite,
         E5m2Nosat,
         E5m2Satfinite,
         E8m0ZeroSat,
         E8m0ZeroNosat,
         E8m0UpSat,
         E8m0UpNosat,
         E2m3,
         E3m2,
         E2m1>(argv[1]);
}
