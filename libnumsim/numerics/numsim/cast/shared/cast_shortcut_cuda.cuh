// The shortcuts of cast_shortcut.h on the device: their float operations, and results that are
// stored four at a time.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "numsim/cast/shared/cast_shortcut.h"

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

// Replaces codes whose ordinal is zero by zero, which has no sign.
template <typename T>
__device__ __forceinline__ void DropSignsOfZeros(const uint32_t ordinals[4], StoredFour<T>& four) {
  const StoredFour<T> packed = Packed<T>(ordinals);
  if constexpr (sizeof(T) == 1) {
    four.word &= ~__vcmpeq4(packed.word, 0);
  } else {
#pragma unroll
    for (int j = 0; j < 2; ++j) four.words[j] &= ~__vcmpeq2(packed.words[j], 0);
  }
}

// FinishOne for four elements. NaN is rare. One sum, which any NaN makes NaN, tests all four
// elements; only then are they finished one by one.
template <typename Out>
__device__ __forceinline__ StoredFour<Out> FinishFour(const EncodeShortcut& s,
                                                      const DecodeShortcut& d,
                                                      const uint32_t in[4],
                                                      const uint32_t ordinals[4]) {
  const float sum = (__uint_as_float(in[0]) + __uint_as_float(in[1])) +
                    (__uint_as_float(in[2]) + __uint_as_float(in[3]));
  const bool is_nan = sum != sum;  // also true for infinities of both signs
  if (is_nan || (kIsValue<Out> && s.unsigned_zero)) {
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
    StoredFour<Out> four = SignedFour<Out>(s, in, ordinals);
    if (s.unsigned_zero) DropSignsOfZeros<Out>(ordinals, four);
    return four;
  }
}

}  // namespace numsim::cuda
