// Stochastic rounding of the elements of a tile of the random stream, by the 16 threads of a half
// warp.
//
// Element j of a tile uses block lane j % 16 (random/streams.h), so the elements of a thread are 16
// apart: lane l of a half warp has elements l, l + 16, ... of one tile. Codes are narrower than
// values, so the threads of a quad (a pair for 2-byte codes) exchange them, and each stores
// neighbouring codes as one word.
#pragma once

#include "numsim/cast/shared/cast_shortcut_cuda.cuh"
#include "numsim/random/shared/philox_cuda.cuh"

namespace numsim::cuda {

template <int kBits>
constexpr unsigned kTileElements = 64 * (32 / kBits);
// Encodes by one of the stochastic shortcuts.
template <EncodeShortcutKind kKind, int kBits, typename T>
struct StochasticEncoder {
  using Out = T;
  static constexpr bool kReads = true;
  EncodeShortcut shortcut;
  DecodeShortcut decode;

  // Returns the ordinal of an element whose random bits are in field kField of `word`.
  template <int kField>
  __device__ __forceinline__ uint32_t Ordinal(uint32_t bits, uint32_t word) const {
    if constexpr (kKind == EncodeShortcutKind::kStochasticSame) {
      return OrdinalStochasticSame<kBits, kField>(shortcut, bits, word);
    } else {
      return OrdinalStochasticNarrower<DeviceFloats, kBits, kField>(shortcut, bits, word);
    }
  }
  __device__ __forceinline__ uint32_t Apply(uint32_t bits, uint32_t top) const {
    return FinishOne<T>(shortcut, decode, bits, Ordinal<32 / kBits - 1>(bits, top));
  }
  // Returns the results of the thread's elements in rows kRow .. kRow + 3 of a tile.
  template <int kRow>
  __device__ __forceinline__ StoredFour<T> Apply4(const uint32_t in[4],
                                                  const PhiloxCounter& block) const {
    constexpr int kFields = 32 / kBits;
    uint32_t ordinals[4];
    ordinals[0] = Ordinal<(kRow + 0) % kFields>(in[0], block[(kRow + 0) / kFields]);
    ordinals[1] = Ordinal<(kRow + 1) % kFields>(in[1], block[(kRow + 1) / kFields]);
    ordinals[2] = Ordinal<(kRow + 2) % kFields>(in[2], block[(kRow + 2) / kFields]);
    ordinals[3] = Ordinal<(kRow + 3) % kFields>(in[3], block[(kRow + 3) / kFields]);
    return FinishFour<T>(shortcut, decode, in, ordinals);
  }
};

constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

// The lane of a thread in its half warp, and the byte selectors of its exchanges with neighbours.
struct HalfWarp {
  unsigned lane;
  unsigned near, far;  // selectors of __byte_perm

  __device__ __forceinline__ explicit HalfWarp(size_t element_bytes) : lane(threadIdx.x % 16) {
    if (element_bytes == 1) {
      near = lane & 1 ? 0x3715 : 0x6240;
      far = lane & 2 ? 0x3276 : 0x5410;
    } else {
      near = lane & 1 ? 0x3276 : 0x5410;
      far = 0;
    }
  }
};

// Stores column `lane` of the four rows of 16 elements each that begin at `to`. All threads of a
// warp must take part. `words`: `to` is aligned to 4 bytes.
template <typename T>
__device__ __forceinline__ void StoreRows(const StoredFour<T>& rows,
                                          const HalfWarp& place,
                                          bool words,
                                          T* to) {
  const unsigned lane = place.lane;
  uint32_t* to_words = reinterpret_cast<uint32_t*>(to);
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int r = 0; r < 4; ++r) to_words[16 * r + lane] = rows.words[r];
  } else if constexpr (sizeof(T) == 2) {
    if (!words) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        to[16 * r + lane] = static_cast<T>(rows.words[r / 2] >> (16 * (r % 2)));
      }
      return;
    }
    // Even threads store to the even row of a pair of rows, odd threads to the odd row.
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t near = __shfl_xor_sync(kWholeWarp, rows.words[r], 1);
      to_words[8 * (2 * r + (lane & 1)) + lane / 2] = __byte_perm(rows.words[r], near, place.near);
    }
  } else {
    if (!words) {
#pragma unroll
      for (int r = 0; r < 4; ++r) to[16 * r + lane] = static_cast<T>(rows.word >> (8 * r));
      return;
    }
    // Transposes 4 x 4 bytes among the threads of a quad: byte r of thread q becomes byte q of
    // thread r.
    const uint32_t near = __shfl_xor_sync(kWholeWarp, rows.word, 1);
    const uint32_t pairs = __byte_perm(rows.word, near, place.near);
    const uint32_t far = __shfl_xor_sync(kWholeWarp, pairs, 2);
    to_words[4 * (lane & 3) + lane / 4] = __byte_perm(pairs, far, place.far);
  }
}

// Computes and stores the results of rows kRow and above of a tile.
template <int kRow, int kBits, class Op>
__device__ __forceinline__ void ApplyRows(const Op& op,
                                          const uint32_t* in,
                                          const PhiloxCounter& block,
                                          const HalfWarp& place,
                                          bool words,
                                          typename Op::Out* to) {
  constexpr int kRows = 4 * (32 / kBits);
  if constexpr (kRow < kRows) {
    StoreRows(op.template Apply4<kRow>(in + kRow, block), place, words, to + 16 * kRow);
    ApplyRows<kRow + 4, kBits>(op, in, block, place, words, to);
  }
}

}  // namespace numsim::cuda
