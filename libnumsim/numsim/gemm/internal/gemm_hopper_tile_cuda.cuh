// The kernel of gemm_hopper_cuda.cu: the assignment of tiles to thread blocks, the ring of stages,
// the sums and their store.
#pragma once

#include <cstdint>
#include <type_traits>

#include "numsim/gemm/internal/gemm_hopper_store_cuda.cuh"
#include "numsim/gemm/internal/hopper_units_cuda.cuh"

namespace numsim::cuda {
namespace {

constexpr int kTileRows = 128;
constexpr int kTileCols = 256;
constexpr int kInnerBytes = 128;  // inner bytes of a stage: the span of one swizzle
constexpr int kUnitInner = 32;    // products per sum that one instruction adds
constexpr int kStages = 4;
// The arrangement of a cluster's blocks, and of their tiles in the result. Blocks in a row of the
// cluster share rows of A, blocks in a column share rows of B (columns of the result). Each block
// copies its part of what it shares into all blocks that share it.
constexpr int kClusterRows = 2;
constexpr int kClusterCols = 1;
constexpr int kCluster = kClusterRows * kClusterCols;
// Blocks into which one block copies: those in its row and in its column, itself counted once.
constexpr int kPeers = kClusterRows + kClusterCols - 1;
constexpr int kMultiplyGroups = 2;  // number of thread groups that multiply
constexpr int kGroup = 128;         // threads of a group
constexpr int kThreads = (kMultiplyGroups + 1) * kGroup;
constexpr int kSumsPerThread = 64 * kTileCols / kGroup;

constexpr int kBytesA = kTileRows * kInnerBytes;
constexpr int kBytesB = kTileCols * kInnerBytes;
constexpr int kStageBytes = kBytesA + kBytesB;
// Height of a band, in clusters. The tiles of a band are computed column by column, so that their
// operands stay in the second-level cache.
constexpr int kBandClusters = 8;

// Groups of 32 columns that are scaled and rounded together.
constexpr int kStoreGroups = 2;

struct SharedMemory {
  uint8_t stages[kStages][kStageBytes];  // in each stage A, then B
  float scales_b[kMultiplyGroups][kTileCols];
  uint64_t full[kStages], empty[kStages];
};
constexpr int kSharedBytes = sizeof(SharedMemory) + 1024;  // 1024 more for alignment to 1024

struct Problem {
  int64_t rows, cols, inner;
  uint32_t down, across;  // number of clusters in each direction
  const float* scales_a;
  const float* scales_b;
  int64_t count_a, count_b;  // number of scales: 0, 1 for all, or one per row or column
  void* out;
};

struct Tile {
  int64_t row, col;  // the first row and column
};

// The place of a block in its cluster.
struct Place {
  int row, col;

  __device__ explicit Place(uint32_t block)
      : row(static_cast<int>(block) % kClusterRows), col(static_cast<int>(block) / kClusterRows) {}
};
__device__ constexpr uint32_t BlockAt(int row, int col) { return row + col * kClusterRows; }

// Returns the tile of the block at `place` in cluster `index`.
__device__ Tile TileAt(const Problem& p, uint32_t index, Place place) {
  const uint32_t in_band = kBandClusters * p.across;
  const uint32_t band = index / in_band;
  const uint32_t within = index - band * in_band;
  const uint32_t height = min(uint32_t{kBandClusters}, p.down - band * kBandClusters);
  const uint32_t across = within / height;
  const uint32_t down = band * kBandClusters + (within - across * height);
  return {int64_t{down * kClusterRows + place.row} * kTileRows,
          int64_t{across * kClusterCols + place.col} * kTileCols};
}

// The current stage and the parity of its barriers' phase.
struct Ring {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

__device__ float ScaleAt(const float* scales, int64_t count, int64_t i) {
  return count == 0 ? 1.0f : scales[min(i, count - 1)];
}

// The tensor core gives a thread two neighbours of every 8 columns. To make a thread's columns
// contiguous, columns are read in another order: place 32 g + 8 j + 2 q + e of a tile holds column
// 32 g + 8 q + 2 j + e, with j, q < 4 and e < 2. The copy engine does the reordering: e, q, j and g
// are dimensions of its tensor map.
constexpr int kColumnGroup = 32;

// Keeps the stages full. Called by one thread.
__device__ void Feed(const Problem& p,
                     const CUtensorMap* map_a,
                     const CUtensorMap* map_b,
                     SharedMemory& shared,
                     Place place) {
  constexpr int kPartA = kTileRows / kClusterCols, kPartB = kTileCols / kClusterRows;
  // A bit for each block in this one's row of the cluster, and in its column.
  uint16_t same_row = 0, same_col = 0;
  for (int i = 0; i < kClusterCols; ++i) same_row |= 1 << BlockAt(place.row, i);
  for (int i = 0; i < kClusterRows; ++i) same_col |= 1 << BlockAt(i, place.col);
  const int a_part = place.col * kPartA, b_part = place.row * kPartB;
  Ring ring;
  for (uint32_t t = blockIdx.x / kCluster; t < p.down * p.across; t += gridDim.x / kCluster) {
    const Tile tile = TileAt(p, t, place);
    const int row = static_cast<int>(tile.row) + a_part, col = static_cast<int>(tile.col) + b_part;
    for (int k = 0; k < p.inner; k += kInnerBytes) {
      const uint32_t full = SharedAddress(&shared.full[ring.stage]);
      WaitFor(SharedAddress(&shared.empty[ring.stage]), ring.parity ^ 1);
      ArriveExpecting(full, kStageBytes);
      const uint32_t a = SharedAddress(shared.stages[ring.stage]);
      CopyRowsTo(same_row, a + a_part * kInnerBytes, map_a, k, row, full);
      CopyColumnsTo(
          same_col, a + kBytesA + b_part * kInnerBytes, map_b, k, col / kColumnGroup, full);
      ring.Next();
    }
  }
}

// Returns block i of the kPeers blocks that share rows or columns with the block at `place`, which
// is one of them.
__device__ uint32_t PeerAt(Place place, int i) {
  if (i < kClusterRows) return BlockAt(i, place.col);
  const int other = i - kClusterRows;
  return BlockAt(place.row, other < place.col ? other : other + 1);
}

// Computes a group's sums of one tile: 64 rows. A thread has the sums of rows lane / 4 and
// lane / 4 + 8 of its warp's 16 rows, at column places 8 j + 2 (lane % 4) and the next one.
template <UnitOperands kOperands, typename Sum>
__device__ void MultiplyTile(const Problem& p,
                             SharedMemory& shared,
                             int group,
                             Place place,
                             Ring& ring,
                             Sum (&sums)[kSumsPerThread]) {
  // For each block that copies into this one, one thread tells it when a stage has been read.
  const int thread = threadIdx.x % kGroup;
  const bool tells = thread < kPeers;
  const uint32_t told = PeerAt(place, thread);
  int last = -1;
  for (int64_t k = 0; k < p.inner; k += kInnerBytes) {
    WaitFor(SharedAddress(&shared.full[ring.stage]), ring.parity);
    const uint32_t stage = SharedAddress(shared.stages[ring.stage]);
    const uint64_t a = OperandDescriptor(stage + group * 64 * kInnerBytes);
    const uint64_t b = OperandDescriptor(stage + kBytesA);
    BeginProducts();
#pragma unroll
    for (int u = 0; u < kInnerBytes / kUnitInner; ++u) {
      const uint64_t along = u * kUnitInner >> 4;
      Multiply<kOperands>(sums, a + along, b + along, k != 0 || u != 0);
    }
    CommitProducts();
    AwaitProducts<1>();  // the products of the stage before are done
    if (last >= 0 && tells) ArriveAt(SharedAddress(&shared.empty[last]), told);
    last = ring.stage;
    ring.Next();
  }
  AwaitProducts<0>();
  if (tells) ArriveAt(SharedAddress(&shared.empty[last]), told);
}

// Stores eight neighbours of a row, given as bf16 codes. They are written once and not read, so the
// store leaves the second-level cache to the operands.
__device__ void StoreBf16(const Problem& p, int64_t row, int64_t col, const uint32_t* words) {
  if (row >= p.rows || col >= p.cols) return;
  auto* out = static_cast<uint16_t*>(p.out) + row * p.cols + col;
  __stcs(reinterpret_cast<uint4*>(out), make_uint4(words[0], words[1], words[2], words[3]));
}

template <typename Sum>
__device__ void StoreFloat(
    const Problem& p, int64_t row, int64_t col, Sum sum, float scale_a, float scale_b) {
  if (row >= p.rows || col >= p.cols) return;
  const float value = ScaledExactly(sum, scale_a, scale_b);
  // The NanResult of the accumulation mode, because conversions may have changed a NaN: the tensor
  // core's NaN, or the usual one for integer sums, where only a scale can cause a NaN.
  constexpr uint32_t kNan = std::is_same_v<Sum, float> ? 0x7FFFFFFFu : 0x7FC00000u;
  const float stored = value == value ? value : __uint_as_float(kNan);
  static_cast<float*>(p.out)[row * p.cols + col] = stored;
}

// Scales, rounds and stores a group's sums of one tile. `tame` says that all of scales_b are tame.
template <bool kBf16, typename Sum>
__device__ void StoreTile(const Problem& p,
                          const Tile& tile,
                          int group,
                          const float* scales_b,
                          bool tame,
                          const Sum (&sums)[kSumsPerThread]) {
  constexpr int kPairs = kStoreGroups * 4;
  const int thread = threadIdx.x % kGroup;
  const int64_t row = tile.row + group * 64 + thread / 32 * 16 + thread % 32 / 4;
  const float scale_a[2] = {ScaleAt(p.scales_a, p.count_a, row),
                            ScaleAt(p.scales_a, p.count_a, row + 8)};
  tame = tame && IsTame(scale_a[0]) && IsTame(scale_a[1]);
#pragma unroll
  for (int g = 0; g < kTileCols / kColumnGroup; g += kStoreGroups) {
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
      for (int i = 0; i < 2 * kPairs; ++i) {
        const int64_t to = row + 8 * (i % 2);
        const int64_t col = tile.col + first + kColumnGroup * (i / 8) + 2 * (i / 2 % 4);
        StoreFloat(p, to, col, from[2 * i], scale_a[i % 2], scales[i / 2].x);
        StoreFloat(p, to, col + 1, from[2 * i + 1], scale_a[i % 2], scales[i / 2].y);
      }
    }
  }
}

// Synchronises the threads of one group. Returns true if `value` is true in all of them.
__device__ bool AllOfGroup(int group, bool value) {
  int all;
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      "setp.ne.s32 p, %1, 0;\n"
      "barrier.cta.red.and.pred.aligned q, %2, %3, p;\n"
      "selp.s32 %0, 1, 0, q;\n"
      "}\n"
      : "=r"(all)
      : "r"(static_cast<int>(value)), "r"(group + 1), "n"(kGroup)
      : "memory");
  return all != 0;
}

// Scales of the columns of a tile, on their way to shared memory: a thread holds its part in
// registers while it multiplies, so that nothing waits for memory.
struct CarriedScales {
  static constexpr int kPart = kTileCols / kGroup;
  float scales[kPart];

  __device__ void Load(const Problem& p, const Tile& tile) {
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
__device__ void MultiplyTiles(const Problem& p, SharedMemory& shared, int group, Place place) {
  using Sum = std::conditional_t<kOperands == UnitOperands::kInt8, int32_t, float>;
  float* scales_b = shared.scales_b[group];
  Ring ring;
  for (uint32_t t = blockIdx.x / kCluster; t < p.down * p.across; t += gridDim.x / kCluster) {
    const Tile tile = TileAt(p, t, place);
    CarriedScales carried;
    carried.Load(p, tile);
    Sum sums[kSumsPerThread];
    MultiplyTile<kOperands>(p, shared, group, place, ring, sums);
    const bool tame = carried.Share(scales_b, group);
    StoreTile<kBf16>(p, tile, group, scales_b, tame, sums);
  }
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define NUMSIM_CLUSTER  // the kernel is empty on these devices
#else
#define NUMSIM_CLUSTER __cluster_dims__(kCluster, 1, 1)
#endif

template <UnitOperands kOperands, bool kBf16>
__global__ void NUMSIM_CLUSTER __launch_bounds__(kThreads, 1)
    Product(Problem p,
            const __grid_constant__ CUtensorMap map_a,
            const __grid_constant__ CUtensorMap map_b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint8_t raw[];
  auto& shared = *reinterpret_cast<SharedMemory*>((reinterpret_cast<uintptr_t>(raw) + 1023) &
                                                  ~uintptr_t{1023});
  const Place place(BlockInCluster());
  if (threadIdx.x == 0) {
    PrefetchMap(&map_a);
    PrefetchMap(&map_b);
    for (int s = 0; s < kStages; ++s) {
      InitBarrier(SharedAddress(&shared.full[s]), 1);
      InitBarrier(SharedAddress(&shared.empty[s]), kPeers * kMultiplyGroups);
    }
    PublishBarriers();
  }
  SynchroniseCluster();
  const int group = threadIdx.x / kGroup;
  if (group == kMultiplyGroups) {
    GiveRegisters<40>();
    if (threadIdx.x == kMultiplyGroups * kGroup) Feed(p, &map_a, &map_b, shared, place);
  } else {
    TakeRegisters<232>();
    MultiplyTiles<kOperands, kBf16>(p, shared, group, place);
  }
  SynchroniseCluster();  // until here the other block may arrive at this one's barriers
#endif
}

#undef NUMSIM_CLUSTER

}  // namespace
}  // namespace numsim::cuda
