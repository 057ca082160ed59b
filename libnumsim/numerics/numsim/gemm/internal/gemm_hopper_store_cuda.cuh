// Scaling and rounding of sums in the store of numsim's Hopper GEMM kernel.
#pragma once

#include <cstdint>
#include <type_traits>

#include "numsim/gemm/internal/gemm_scaled_sum.h"

namespace numsim::cuda {

// Stores 8 neighbours of a row at `at`, an index of the result: float32, with `kNan` for every NaN, or
// rounded to bf16. They are written once and not read, so the store leaves the second-level cache to
// the operands.
template <bool kBf16, uint32_t kNan>
__device__ __forceinline__ void StoreEight(void* out, int64_t at, const float (&values)[8]) {
  uint32_t words[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const bool is_nan = !(values[i] == values[i]);
    words[i] = kBf16 ? RoundToBf16(values[i]) : is_nan ? kNan : __float_as_uint(values[i]);
  }
  if constexpr (kBf16) {
    __stcs(reinterpret_cast<uint4*>(static_cast<uint16_t*>(out) + at),
           make_uint4(words[0] | words[1] << 16,
                      words[2] | words[3] << 16,
                      words[4] | words[5] << 16,
                      words[6] | words[7] << 16));
  } else {
    auto* const to = reinterpret_cast<uint4*>(static_cast<uint32_t*>(out) + at);
    __stcs(to, make_uint4(words[0], words[1], words[2], words[3]));
    __stcs(to + 1, make_uint4(words[4], words[5], words[6], words[7]));
  }
}

// RoundToBf16(ScaledExactly(...)) needs only float32 arithmetic for almost all arguments. The guess
// fl32(fl32(S) * fl32(sa * sb)) differs from the float32 t by less than 4 units in the last place
// (three roundings of relative error 2^-24, and t's own), if nothing underflows or overflows on the
// way. So guess and t round to the same bf16 unless the guess is that close to a midpoint between
// two bf16 values.

// True for scales with which nothing underflows or overflows: the magnitude of a nonzero sum is
// between 2^-50 and 2^50, whatever the operands.
__device__ __forceinline__ bool IsTame(float scale) {
  return scale >= 0x1p-30f && scale <= 0x1p30f;
}

// Collects the guesses of several results and tells whether they all determine their bf16.
class Settled {
 public:
  template <typename Sum>
  __device__ __forceinline__ void Add(Sum, float first, float second) {
    constexpr uint32_t kFromMidpoint = (0x8000u + kMargin) * 0x10001u;
    const uint32_t below_bf16 =
        __byte_perm(__float_as_uint(first), __float_as_uint(second), 0x5410);
    nearest_ = __viaddmin_u16x2(below_bf16, kFromMidpoint, nearest_);
    // Excludes infinities and NaN, which integer sums cannot give.
    if constexpr (std::is_same_v<Sum, float>) {
      finite_ = finite_ && fabsf(first) < 0x1p120f && fabsf(second) < 0x1p120f;
    }
  }
  __device__ __forceinline__ bool All() const {
    return min(nearest_ & 0xFFFFu, nearest_ >> 16) > 2 * kMargin && finite_;
  }

 private:
  static constexpr uint32_t kMargin = 4;
  // In each half: the least distance of the bits below bf16 from their midpoint, plus the margin.
  uint32_t nearest_ = ~0u;
  bool finite_ = true;
};

// Returns two bf16 codes, the first in the low half.
__device__ __forceinline__ uint32_t RoundPairToBf16(float first, float second) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

// Scales and rounds two neighbours of a row by the definition, whatever their values.
template <typename Sum>
__device__ __forceinline__ uint32_t
ScalePairExactly(Sum first, Sum second, float scale_a, const float2& scale_b) {
  return RoundToBf16(ScaledExactly(first, scale_a, scale_b.x)) |
         RoundToBf16(ScaledExactly(second, scale_a, scale_b.y)) << 16;
}

// Scales a thread's sums, 2 kPairs columns of two rows, and rounds them to bf16.
// sums[4 i + 2 half] and the next one belong to columns 2 i and 2 i + 1, whose scales are
// scales_b[i]; they become words[half][i]. `tame` says that all scales are tame. A single test
// covers all guesses, so that their chains of operations overlap.
template <int kPairs, typename Sum>
__device__ __forceinline__ void ScaleToBf16(const Sum* sums,
                                            const float (&scale_a)[2],
                                            const float2 (&scales_b)[kPairs],
                                            bool tame,
                                            uint32_t (&words)[2][kPairs]) {
  Settled settled;
#pragma unroll
  for (int i = 0; i < 2 * kPairs; ++i) {
    const float scale = scale_a[i % 2];
    const float2 of_b = scales_b[i / 2];
    const float first = static_cast<float>(sums[2 * i]) * (scale * of_b.x);
    const float second = static_cast<float>(sums[2 * i + 1]) * (scale * of_b.y);
    settled.Add(sums[0], first, second);
    words[i % 2][i / 2] = RoundPairToBf16(first, second);
  }
  if (tame && settled.All()) return;
#pragma unroll
  for (int i = 0; i < 2 * kPairs; ++i) {
    words[i % 2][i / 2] =
        ScalePairExactly(sums[2 * i], sums[2 * i + 1], scale_a[i % 2], scales_b[i / 2]);
  }
}

}  // namespace numsim::cuda
