// The frame of numsim's Hopper kernels: the assignment of tiles to thread blocks, the ring of stages
// that one group of threads keeps full, and the groups that multiply.
#pragma once

#include <cstdint>
#include <type_traits>

#include "numsim/gemm/internal/hopper_units_cuda.cuh"

namespace numsim::cuda {
namespace {

constexpr int kTileRows = 128;
constexpr int kLeastTileCols = 128;  // the width of the narrowest tiles of any kernel
constexpr int kInnerBytes = 128;     // inner bytes of a stage: the span of one swizzle
constexpr int kUnitInner = 32;       // products per sum that one instruction adds
constexpr int kMultiplyGroups = 2;   // number of thread groups that multiply
constexpr int kGroup = 128;          // threads of a group
constexpr int kThreads = (kMultiplyGroups + 1) * kGroup;
// Registers of a thread that feeds, which gives some back, and of one that multiplies, which takes
// them.
constexpr int kFeedRegisters = 24, kMultiplyRegisters = 240;
// Height of a band, in clusters. The tiles of a band are computed column by column, so that their
// operands stay in the second-level cache.
constexpr int kBandClusters = 8;
// The tensor core gives a thread two neighbours of every 8 columns. To make a thread's columns
// contiguous, columns are read in another order: place 32 g + 8 j + 2 q + e of a tile holds column
// 32 g + 8 q + 2 j + e, with j, q < 4 and e < 2. The copy engine does the reordering: e, q, j and g
// are dimensions of its tensor map.
constexpr int kColumnGroup = 32;

// The width of tiles, the number of stages, and the arrangement of a cluster's blocks and of their
// tiles in the result. Blocks in a row of the cluster share rows of A, blocks in a column share rows
// of B (columns of the result). Each block copies its part of what it shares into all blocks that
// share it.
template <int kCols, int kStageCount, int kRowsOfCluster, int kColsOfCluster>
struct Geometry {
  static_assert(kCols >= kLeastTileCols);
  static constexpr int kTileCols = kCols;
  static constexpr int kStages = kStageCount;
  static constexpr int kClusterRows = kRowsOfCluster;
  static constexpr int kClusterCols = kColsOfCluster;
  static constexpr int kCluster = kClusterRows * kClusterCols;
  // Blocks into which one block copies: those in its row and in its column, itself counted once.
  static constexpr int kPeers = kClusterRows + kClusterCols - 1;
  static constexpr int kSumsPerThread = 64 * kTileCols / kGroup;
  static constexpr int kBytesA = kTileRows * kInnerBytes;
  static constexpr int kBytesB = kTileCols * kInnerBytes;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  // The parts of a stage that each block copies.
  static constexpr int kPartA = kTileRows / kClusterCols;
  static constexpr int kPartB = kTileCols / kClusterRows;
};

// `Scales` is where a kernel keeps the scales of columns, one per group that multiplies.
template <typename G, typename Scales>
struct SharedMemory {
  uint8_t stages[G::kStages][G::kStageBytes];  // in each stage A, then B
  Scales scales_b[kMultiplyGroups];
  uint64_t full[G::kStages], empty[G::kStages];
};

// The part of a problem that all kernels need.
struct GemmSizes {
  int64_t rows, cols, inner;
  uint32_t down, across;  // number of clusters in each direction
};

struct Tile {
  int64_t row, col;  // the first row and column
};

// The place of a block in its cluster.
template <typename G>
struct BlockPlace {
  int row, col;

  __device__ explicit BlockPlace(uint32_t block)
      : row(static_cast<int>(block) % G::kClusterRows),
        col(static_cast<int>(block) / G::kClusterRows) {}

  static __device__ constexpr uint32_t At(int row, int col) { return row + col * G::kClusterRows; }

  // Returns block i of the kPeers blocks that share rows or columns with this one, which is one of
  // them.
  __device__ uint32_t Peer(int i) const {
    if (i < G::kClusterRows) return At(i, col);
    const int other = i - G::kClusterRows;
    return At(row, other < col ? other : other + 1);
  }
};

// Returns the tile of the block at `place` in cluster `index`.
template <typename G>
__device__ Tile TileAt(const GemmSizes& p, uint32_t index, BlockPlace<G> place) {
  const uint32_t in_band = kBandClusters * p.across;
  const uint32_t band = index / in_band;
  const uint32_t within = index - band * in_band;
  const uint32_t height = min(uint32_t{kBandClusters}, p.down - band * kBandClusters);
  const uint32_t across = within / height;
  const uint32_t down = band * kBandClusters + (within - across * height);
  return {int64_t{down * G::kClusterRows + place.row} * kTileRows,
          int64_t{across * G::kClusterCols + place.col} * G::kTileCols};
}

// Calls `work(tile)` for every tile of the block at `place`.
template <typename G, typename Work>
__device__ void ForEachTile(const GemmSizes& p, BlockPlace<G> place, const Work& work) {
  for (uint32_t t = blockIdx.x / G::kCluster; t < p.down * p.across; t += gridDim.x / G::kCluster) {
    work(TileAt<G>(p, t, place));
  }
}

// The current stage and the parity of its barriers' phase.
template <typename G>
struct Ring {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void Next() {
    if (++stage == G::kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Keeps the stages full. Called by one thread.
template <typename G, typename Shared>
__device__ void Feed(const GemmSizes& p,
                     const CUtensorMap* map_a,
                     const CUtensorMap* map_b,
                     Shared& shared,
                     BlockPlace<G> place) {
  // A bit for each block in this one's row of the cluster, and in its column.
  uint16_t same_row = 0, same_col = 0;
  for (int i = 0; i < G::kClusterCols; ++i) same_row |= 1 << place.At(place.row, i);
  for (int i = 0; i < G::kClusterRows; ++i) same_col |= 1 << place.At(i, place.col);
  const int a_part = place.col * G::kPartA, b_part = place.row * G::kPartB;
  Ring<G> ring;
  ForEachTile<G>(p, place, [&](const Tile& tile) {
    const int row = static_cast<int>(tile.row) + a_part, col = static_cast<int>(tile.col) + b_part;
    for (int k = 0; k < p.inner; k += kInnerBytes) {
      const uint32_t full = SharedAddress(&shared.full[ring.stage]);
      WaitFor(SharedAddress(&shared.empty[ring.stage]), ring.parity ^ 1);
      ArriveExpecting(full, G::kStageBytes);
      const uint32_t a = SharedAddress(shared.stages[ring.stage]);
      CopyRowsTo(same_row, a + a_part * kInnerBytes, map_a, k, row, full);
      CopyColumnsTo(
          same_col, a + G::kBytesA + b_part * kInnerBytes, map_b, k, col / kColumnGroup, full);
      ring.Next();
    }
  });
}

// Adds the products of the current stage to a group's 64 rows of sums, or begins them anew. Does not
// wait for the result.
template <UnitOperands kOperands, typename G, typename Shared, typename Sum>
__device__ void EnqueueStage(Shared& shared,
                             int group,
                             const Ring<G>& ring,
                             bool accumulate,
                             Sum (&sums)[G::kSumsPerThread]) {
  WaitFor(SharedAddress(&shared.full[ring.stage]), ring.parity);
  const uint32_t stage = SharedAddress(shared.stages[ring.stage]);
  const uint64_t a = OperandDescriptor(stage + group * 64 * kInnerBytes);
  const uint64_t b = OperandDescriptor(stage + G::kBytesA);
  BeginProducts();
#pragma unroll
  for (int u = 0; u < kInnerBytes / kUnitInner; ++u) {
    const uint64_t along = u * kUnitInner >> 4;
    Multiply<kOperands>(sums, a + along, b + along, accumulate || u != 0);
  }
  CommitProducts();
}

// Tells the blocks that copy into this one that a group has read stages. For each of them one
// thread of the group tells it.
template <typename G>
struct StageReader {
  uint32_t told;
  bool tells;

  __device__ explicit StageReader(BlockPlace<G> place)
      : told(place.Peer(threadIdx.x % kGroup)), tells(threadIdx.x % kGroup < G::kPeers) {}

  template <typename Shared>
  __device__ void HasRead(Shared& shared, int stage) const {
    if (tells) ArriveAt(SharedAddress(&shared.empty[stage]), told);
  }
};

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

// The bits of a float32 result that is NaN: NanResult of the accumulation mode, because conversions
// may have changed a NaN. It is the tensor core's NaN, or the usual one for integer sums, where only
// a scale can cause a NaN.
template <typename Sum>
constexpr uint32_t kNanOfSums = std::is_same_v<Sum, float> ? 0x7FFFFFFFu : 0x7FC00000u;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define NUMSIM_CLUSTER(size)  // the kernel is empty on these devices
#else
#define NUMSIM_CLUSTER(size) __cluster_dims__(size, 1, 1)
#endif

// Computes the GEMM. `Work` says how: its Shape, Problem, Scales, and a function MultiplyTiles that
// is called by each group that multiplies.
template <typename Work>
__global__ void NUMSIM_CLUSTER(Work::Shape::kCluster) __launch_bounds__(kThreads, 1)
    Product(typename Work::Problem p,
            const __grid_constant__ CUtensorMap map_a,
            const __grid_constant__ CUtensorMap map_b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using G = typename Work::Shape;
  using Shared = SharedMemory<G, typename Work::Scales>;
  extern __shared__ uint8_t raw[];
  auto& shared =
      *reinterpret_cast<Shared*>((reinterpret_cast<uintptr_t>(raw) + 1023) & ~uintptr_t{1023});
  const BlockPlace<G> place(BlockInCluster());
  if (threadIdx.x == 0) {
    PrefetchMap(&map_a);
    PrefetchMap(&map_b);
    for (int s = 0; s < G::kStages; ++s) {
      InitBarrier(SharedAddress(&shared.full[s]), 1);
      InitBarrier(SharedAddress(&shared.empty[s]), G::kPeers * kMultiplyGroups);
    }
    PublishBarriers();
  }
  SynchroniseCluster();
  const int group = threadIdx.x / kGroup;
  if (group == kMultiplyGroups) {
    GiveRegisters<kFeedRegisters>();
    if (threadIdx.x == kMultiplyGroups * kGroup) Feed<G>(p, &map_a, &map_b, shared, place);
  } else {
    TakeRegisters<kMultiplyRegisters>();
    Work::MultiplyTiles(p, shared, group, place);
  }
  SynchroniseCluster();  // until here the other blocks may arrive at this one's barriers
#endif
}

#undef NUMSIM_CLUSTER

// The shared memory of a kernel, with 1024 bytes more to align it to 1024.
template <typename Work>
constexpr int kSharedBytes = sizeof(SharedMemory<typename Work::Shape, typename Work::Scales>) +
                             1024;

}  // namespace
}  // namespace numsim::cuda
