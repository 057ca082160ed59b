// Shared by the kernels of cast_*_cuda.cu: elements that are loaded together, and the loop over an
// array.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/cast/internal/cast_device.h"
#include "numsim/cast/shared/cast_shortcut_cuda.cuh"
#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/random/shared/philox_cuda.cuh"

namespace numsim::cuda {

// Four elements that are loaded together.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T at[4];
};

// Convert between an element and its bits in a word.
__device__ __forceinline__ uint32_t Word(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint32_t Word(uint32_t x) { return x; }
__device__ __forceinline__ uint32_t Word(uint16_t x) { return x; }
template <typename T>
__device__ __forceinline__ T FromWord(uint32_t word) {
  if constexpr (sizeof(T) == 4 && T(0.5) != T(0)) {
    return __uint_as_float(word);
  } else {
    return static_cast<T>(word);
  }
}

constexpr int kThreads = 256;
constexpr int kFoursPerThread = 4;
constexpr size_t kMapChunk = size_t{4} * kThreads * kFoursPerThread;

// Writes out[i] = op's result for in[i]. Op has
//   In, Out                           element types
//   Apply(uint32_t in, size_t i)      returns the word of result i from the word of in[i]
//   Apply4(const uint32_t in[4])      unless kOneByOne: four results, which must not depend on i
// `in` may be `out` if their elements have the same size. `wide`: both are aligned to 4 elements.
template <class Op>
__global__ void __launch_bounds__(kThreads) MapKernel(const typename Op::In* in,
                                                      size_t n,
                                                      typename Op::Out* out,
                                                      bool wide,
                                                      const __grid_constant__ Op op) {
  using In = typename Op::In;
  using Out = typename Op::Out;
  const size_t begin = blockIdx.x * kMapChunk;
  if constexpr (!Op::kOneByOne) {
    if (wide && begin + kMapChunk <= n) {
      const Four<In>* from = reinterpret_cast<const Four<In>*>(in + begin) + threadIdx.x;
      StoredFour<Out>* to = reinterpret_cast<StoredFour<Out>*>(out + begin) + threadIdx.x;
      Four<In> loaded[kFoursPerThread];
#pragma unroll
      for (int g = 0; g < kFoursPerThread; ++g) loaded[g] = from[g * kThreads];
#pragma unroll
      for (int g = 0; g < kFoursPerThread; ++g) {
        uint32_t words[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) words[j] = Word(loaded[g].at[j]);
        to[g * kThreads] = op.Apply4(words);
      }
      return;
    }
  }
  // One element at a time, while those of the following rounds are being loaded.
  const size_t end = begin + kMapChunk < n ? begin + kMapChunk : n;
  uint32_t ahead[4] = {0, 0, 0, 0};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const size_t i = begin + j * kThreads + threadIdx.x;
    if (i < end) ahead[j] = Word(in[i]);
  }
#pragma unroll 1
  for (size_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const uint32_t word = ahead[0];
    ahead[0] = ahead[1];
    ahead[1] = ahead[2];
    ahead[2] = ahead[3];
    if (i + 4 * kThreads < end) ahead[3] = Word(in[i + 4 * kThreads]);
    out[i] = FromWord<Out>(op.Apply(word, i));
  }
}

template <typename T>
bool IsAligned(const T* data, size_t elements) {
  return reinterpret_cast<uintptr_t>(data) % (elements * sizeof(T)) == 0;
}

// Runs MapKernel over an array. `what` names the kernel in error messages.
template <class Op>
void Map(const char* what,
         const Op& op,
         MatrixSpan<const typename Op::In> in,
         MatrixSpan<typename Op::Out> out) {
  const size_t n = in.Elements();
  if (n == 0) return;
  const bool wide = IsAligned(in.data, 4) && IsAligned(out.data, 4);
  const unsigned blocks = static_cast<unsigned>((n + kMapChunk - 1) / kMapChunk);
  MapKernel<Op><<<blocks, kThreads, 0, Raw(out.place.Stream())>>>(in.data, n, out.data, wide, op);
  CheckLaunch(what, fmt::format("{} elements", n));
}

// Serve every conversion, by the rounding and decoding rules. Defined in cast_rule_cuda.cu.
template <typename Out>
void EncodeByRule(const EncodePlan& plan,
                  MatrixSpan<const float> in,
                  MatrixSpan<Out> out,
                  const ArrayRandom& random);
template <typename Code>
void DecodeByRule(const FormatSpec& format, MatrixSpan<const Code> codes, MatrixSpan<float> out);

// Encodes by a stochastic shortcut. Requires a shortcut of a stochastic kind and, if Out is float,
// a usable DecodeShortcut. Defined in cast_stochastic_cuda.cu.
template <typename Out>
void EncodeStochastic(const EncodePlan& plan,
                      const EncodeShortcut& shortcut,
                      MatrixSpan<const float> in,
                      MatrixSpan<Out> out,
                      const ArrayRandom& random);

}  // namespace numsim::cuda
