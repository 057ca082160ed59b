// The kernel for scales of tensors and rows: tiles of 128 x 256 sums along the whole inner dimension,
// scaled and rounded in their store.
#pragma once

#include <cstdint>
#include <type_traits>

#include "numsim/gemm/internal/gemm_hopper_frame_cuda.cuh"
#include "numsim/gemm/internal/gemm_hopper_store_cuda.cuh"

namespace numsim::cuda {
namespace {

using RowShape = Geometry<256, 4, 2, 1>;

// Groups of 32 columns that are scaled and rounded together.
constexpr int kStoreGroups = 2;

struct RowProblem : GemmSizes {
  const float* scales_a;
  const float* scales_b;
  int64_t count_a, count_b;  // number of scales: 0, 1 for all, or one per row or column
  void* out;
};

__device__ float ScaleAt(const float* scales, int64_t count, int64_t i) {
  return count == 0 ? 1.0f : scales[min(i, count - 1)];
}

// Computes a group's sums of one tile: 64 rows. A thread has the sums of rows lane / 4 and
// lane / 4 + 8 of its warp's 16 rows, at column places 8 j + 2 (lane % 4) and the next one.
template <UnitOperands kOperands, typename Shared, typename Sum>
__device__ void MultiplyTile(const RowProblem& p,
                             Shared& shared,
                             int group,
                             const StageReader<RowShape>& reader,
                             Ring<RowShape>& ring,
                             Sum (&sums)[RowShape::kSumsPerThread]) {
  int last = -1;
  for (int64_t k = 0; k < p.inner; k += kInnerBytes) {
    EnqueueStage<kOperands>(shared, group, ring, k != 0, sums);
    AwaitProducts<1>();  // the products of the stage before are done
    if (last >= 0) reader.HasRead(shared, last);
    last = ring.stage;
    ring.Next();
  }
  AwaitProducts<0>();
  reader.HasRead(shared, last);
}

// Stores eight neighbours of a row, given as bf16 codes. They are written once and not read, so the
// store leaves the second-level cache to the operands.
__device__ void StoreBf16(const RowProblem& p, int64_t row, int64_t col, const uint32_t* words) {
  if (row >= p.rows || col >= p.cols) return;
  auto* out = static_cast<uint16_t*>(p.out) + row * p.cols + col;
  __stcs(reinterpret_cast<uint4*>(out), make_uint4(words[0], words[1], words[2], words[3]));
}

// Scales, rounds and stores a group's sums of one tile. `tame` says that all of scales_b are tame.
template <bool kBf16, typename Sum>
__device__ void StoreTile(const RowProblem& p,
                          const Tile& tile,
                          int group,
                          const float* scales_b,
                          bool tame,
                          const Sum (&sums)[RowShape::kSumsPerThread]) {
  constexpr int kPairs = kStoreGroups * 4;
  const int thread = threadIdx.x % kGroup;
  const int64_t row = tile.row + group * 64 + thread / 32 * 16 + thread % 32 / 4;
  const float scale_a[2] = {ScaleAt(p.scales_a, p.count_a, row),
                            ScaleAt(p.scales_a, p.count_a, row + 8)};
  tame = tame && IsTame(scale_a[0]) && IsTame(scale_a[1]);
#pragma unroll
  for (int g = 0; g < RowShape::kTileCols / kColumnGroup; g += kStoreGroups) {
    const int first = kColumnGroup * g + 8 * (thread % 4);  // this thread's columns
    float2 scales[kPairs];
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const int col = first + kColumnGroup * (i / 4) + 2 * (i % 4);
      scales[i] = *reinterpret_cast<const float2*>(scales_b + col);
    }
    const Sum* from = sums + 16 * g;
    if constexpr (kBf16) {
      uint32_t words[2][kPairs];
      ScaleToBf16<kPairs>(from, scale_a, scales, tame, words);
#pragma unroll
      for (int i = 0; i < kStoreGroups; ++i) {
        const int64_t col = tile.col + first + kColumnGroup * i;
        StoreBf16(p, row, col, words[0] + 4 * i);
        StoreBf16(p, row + 8, col, words[1] + 4 * i);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 2 * kStoreGroups; ++i) {
        const int half = i % 2, group_of_columns = i / 2;
        float values[8];
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          const int pair = 4 * group_of_columns + c / 2;
          const float scale_b_of = c % 2 == 0 ? scales[pair].x : scales[pair].y;
          values[c] = ScaledExactly(from[4 * pair + 2 * half + c % 2], scale_a[half], scale_b_of);
        }
        const int64_t to = row + 8 * half, col = tile.col + first + kColumnGroup * group_of_columns;
        if (to >= p.rows || col >= p.cols) continue;
        StoreEight<false, kNanOfSums<Sum>>(p.out, to * p.cols + col, values);
      }
    }
  }
}

// Scales of the columns of a tile, on their way to shared memory: a thread holds its part in
// registers while it multiplies, so that nothing waits for memory.
struct CarriedScales {
  static constexpr int kPart = RowShape::kTileCols / kGroup;
  float scales[kPart];

  __device__ void Load(const RowProblem& p, const Tile& tile) {
#pragma unroll
    for (int i = 0; i < kPart; ++i) {
      const int64_t col = tile.col + threadIdx.x % kGroup + i * kGroup;
      scales[i] = ScaleAt(p.scales_b, p.count_b, col);
    }
  }

  // Hands the scales to the group through `shared`. Returns true if they are all tame.
  __device__ bool Share(float* shared, int group) const {
    AllOfGroup(group, true);  // all threads are done with the scales of the previous tile
    bool tame = true;
#pragma unroll
    for (int i = 0; i < kPart; ++i) {
      shared[threadIdx.x % kGroup + i * kGroup] = scales[i];
      tame = tame && IsTame(scales[i]);
    }
    return AllOfGroup(group, tame);
  }
};

template <UnitOperands kOperands, bool kBf16>
struct RowScaled {
  using Shape = RowShape;
  using Problem = RowProblem;
  using Scales = float[Shape::kTileCols];

  template <typename Shared>
  static __device__ void MultiplyTiles(const Problem& p,
                                       Shared& shared,
                                       int group,
                                       BlockPlace<Shape> place) {
    using Sum = std::conditional_t<kOperands == UnitOperands::kInt8, int32_t, float>;
    const StageReader<Shape> reader(place);
    Ring<Shape> ring;
    ForEachTile<Shape>(p, place, [&](const Tile& tile) {
      CarriedScales carried;
      carried.Load(p, tile);
      Sum sums[Shape::kSumsPerThread];
      MultiplyTile<kOperands>(p, shared, group, reader, ring, sums);
      const bool tame = carried.Share(shared.scales_b[group], group);
      StoreTile<kBf16>(p, tile, group, shared.scales_b[group], tame, sums);
    });
  }
};

}  // namespace
}  // namespace numsim::cuda
