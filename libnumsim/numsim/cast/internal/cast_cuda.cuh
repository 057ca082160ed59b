// Shared by the kernels of cast_*_cuda.cu: the device's float operations for the shortcuts, groups
// of elements that are loaded and stored together, and the loop over an array.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/cast/cast_device.h"
#include "numsim/cast/internal/cast_shortcut.h"
#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/random/shared/philox_cuda.cuh"

namespace numsim::cuda {

// The operations of HostFloats (cast_shortcut.h), on the device.
struct DeviceFloats {
  static __device__ __forceinline__ float Magnitude(uint32_t bits) {
    return fabsf(__uint_as_float(bits));
  }
  static __device__ __forceinline__ float Add(float a, float b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ float AddTowardZero(float a, float b) {
    return __fadd_rz(a, b);
  }
  static __device__ __forceinline__ float MultiplyAdd(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
  }
  static __device__ __forceinline__ float Multiply(float a, float b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ uint32_t Truncate(float a) { return __float2uint_rz(a); }
  template <int kBits, int kField>
  static __device__ __forceinline__ float FloatOfField(uint32_t word) {
    // __byte_perm numbers the bytes of the word 0 .. 3 from the low end, those of 2^23 4 .. 7.
    constexpr uint32_t kBytes =
        kBits == 16 ? 0x7600u | (2 * kField + 1) << 4 | 2 * kField : 0x7650u | kField;
    return __uint_as_float(__byte_perm(word, 0x4B000000u, kBytes));
  }
};

// Four elements that are loaded together.
template <typename T>
struct alignas(4 * sizeof(T)) Four {
  T at[4];
};

// Four elements that are stored together. They are words, so that the compiler never splits the
// store.
template <typename T>
struct StoredFour;
template <>
struct StoredFour<uint8_t> {
  uint32_t word;
};
template <>
struct alignas(8) StoredFour<uint16_t> {
  uint32_t words[2];
};
template <>
struct alignas(16) StoredFour<uint32_t> {
  uint32_t words[4];
};
template <>
struct alignas(16) StoredFour<float> {
  uint32_t words[4];
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

// True if T is float: results are then values as float32 bits, not codes.
template <typename T>
constexpr bool kIsValue = T(0.5) != T(0);

// Returns the code or the value of an element from its ordinal.
template <typename Out>
__device__ __forceinline__ uint32_t
FinishOne(const EncodeShortcut& s, const DecodeShortcut& d, uint32_t bits, uint32_t ordinal) {
  uint32_t code = SignedCode(s, bits, ordinal);
  if (s.unsigned_zero && ordinal == 0) code = 0;
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) code = NanOf(s, bits);
  if constexpr (kIsValue<Out>) code = DecodeByShortcut<DeviceFloats>(d, code);
  return code;
}

// Returns the lowest element of each of four words, packed in order.
template <typename T>
__device__ __forceinline__ StoredFour<T> Packed(const uint32_t words[4]) {
  if constexpr (sizeof(T) == 1) {
    const uint32_t low = __byte_perm(words[0], words[1], 0x0040);
    const uint32_t high = __byte_perm(words[2], words[3], 0x0040);
    return {__byte_perm(low, high, 0x5410)};
  } else if constexpr (sizeof(T) == 2) {
    return {__byte_perm(words[0], words[1], 0x5410), __byte_perm(words[2], words[3], 0x5410)};
  } else {
    return {words[0], words[1], words[2], words[3]};
  }
}

// Returns the codes of four elements that are not NaN, in a format with a negative zero. Moves the
// signs of all elements of a word at once.
template <typename T>
__device__ __forceinline__ StoredFour<T> SignedFour(const EncodeShortcut& s,
                                                    const uint32_t in[4],
                                                    const uint32_t ordinals[4]) {
  StoredFour<T> four = Packed<T>(ordinals);
  if constexpr (sizeof(T) == 1) {
    const uint32_t low = __byte_perm(in[0], in[1], 0x0073);
    const uint32_t high = __byte_perm(in[2], in[3], 0x0073);
    four.word |= (__byte_perm(low, high, 0x5410) & 0x80808080u) >> (s.to_sign - 24);
  } else {
    static_assert(sizeof(T) == 2);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const uint32_t high = __byte_perm(in[2 * j], in[2 * j + 1], 0x7632);
      four.words[j] |= (high & 0x80008000u) >> (s.to_sign - 16);
    }
  }
  return four;
}

// FinishOne for four elements. NaN and formats without a negative zero are rare. One sum, which any
// NaN makes NaN, tests all four elements; only then are they finished one by one.
template <typename Out>
__device__ __forceinline__ StoredFour<Out> FinishFour(const EncodeShortcut& s,
                                                      const DecodeShortcut& d,
                                                      const uint32_t in[4],
                                                      const uint32_t ordinals[4]) {
  const float sum = (__uint_as_float(in[0]) + __uint_as_float(in[1])) +
                    (__uint_as_float(in[2]) + __uint_as_float(in[3]));
  const bool is_nan = sum != sum;  // also true for infinities of both signs
  if (s.unsigned_zero || is_nan) {
    uint32_t finished[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) finished[j] = FinishOne<Out>(s, d, in[j], ordinals[j]);
    return Packed<Out>(finished);
  }
  if constexpr (kIsValue<Out>) {
    uint32_t values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      values[j] = DecodeByShortcut<DeviceFloats>(d, SignedCode(s, in[j], ordinals[j]));
    }
    return Packed<Out>(values);
  } else {
    return SignedFour<Out>(s, in, ordinals);
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
         DeviceSpan<const typename Op::In> in,
         DeviceSpan<typename Op::Out> out,
         DeviceStream& stream) {
  const size_t n = in.size();
  if (n == 0) return;
  const bool wide = IsAligned(in.data(), 4) && IsAligned(out.data(), 4);
  const unsigned blocks = static_cast<unsigned>((n + kMapChunk - 1) / kMapChunk);
  MapKernel<Op><<<blocks, kThreads, 0, Raw(stream)>>>(in.data(), n, out.data(), wide, op);
  CheckLaunch(what, fmt::format("{} elements", n));
}

// Serve every conversion, by the rounding and decoding rules. Defined in cast_rule_cuda.cu.
template <typename Out>
void EncodeByRule(const EncodePlan& plan,
                  DeviceSpan<const float> in,
                  DeviceSpan<Out> out,
                  DeviceStream& stream,
                  const ArrayRandom& random);
template <typename Code>
void DecodeByRule(const FormatSpec& format,
                  DeviceSpan<const Code> codes,
                  DeviceSpan<float> out,
                  DeviceStream& stream);

// Encodes by a stochastic shortcut. Requires a shortcut of a stochastic kind and, if Out is float,
// a usable DecodeShortcut. Defined in cast_stochastic_cuda.cu.
template <typename Out>
void EncodeStochastic(const EncodePlan& plan,
                      const EncodeShortcut& shortcut,
                      DeviceSpan<const float> in,
                      DeviceSpan<Out> out,
                      DeviceStream& stream,
                      const ArrayRandom& random);

}  // namespace numsim::cuda
