// The kernel for scales of blocks along the inner dimension: tiles of 128 x 128 sums that start anew
// with each segment. At the end of a segment they are scaled and added to the results in float32
// registers, outside of the tensor core. A wider tile has no registers for both.
#pragma once

#include <cstdint>
#include <type_traits>

#include "numsim/gemm/internal/gemm_hopper_frame_cuda.cuh"
#include "numsim/gemm/internal/gemm_hopper_store_cuda.cuh"

namespace numsim::cuda {
namespace {

using BlockShape = Geometry<128, 6, 2, 1>;

// The scale of operands without scales.
__device__ const float kOneScale = 1.0f;

// The scales of one operand, as GemmScales defines them. Without scales: `data` is null, and
// row_stride and segment_stride are 0. Indices have 32 bits, because registers are scarce.
struct BlockScales {
  const float* data;
  int vectors, row_group, row_stride, segment_stride;

  // Returns the index of the first scale of a vector. A vector beyond the last has the last one's
  // scales: its results are not stored.
  __device__ int First(int vector) const {
    return min(vector, vectors - 1) / row_group * row_stride;
  }
  __device__ float At(int index) const {
    return __ldg((data != nullptr ? data : &kOneScale) + index);
  }
};

struct BlockProblem : GemmSizes {
  BlockScales scales_a, scales_b;
  int segment;  // a multiple of kInnerBytes
  void* out;
};

// True for powers of two with which a fused multiply-add gives fl32(t + out): t is then S * (sa * sb),
// with S rounded to float32 if it is an integer, and needs no rounding. The magnitude of a nonzero S
// lies between 2^-25 and 2^55, so that no product underflows or overflows.
__device__ __forceinline__ bool IsTamePower(float scale) {
  return (__float_as_uint(scale) & 0x807FFFFFu) == 0 && scale >= 0x1p-50f && scale <= 0x1p30f;
}

// Adds the scaled sums of a segment to the results: out = fl32(t + out) with
// t = fl32(fl64(S * (sa * sb))), the definition of gemm.h. `scale_b(g, c)` is the scale of this
// thread's column c, of 8, in column group g.
template <bool kTame, typename Sum, typename ScaleB>
__device__ __forceinline__ void Promote(const Sum (&sums)[BlockShape::kSumsPerThread],
                                        const float (&scale_a)[2],
                                        const ScaleB& scale_b,
                                        float (&out)[BlockShape::kSumsPerThread]) {
#pragma unroll
  for (int g = 0; g < BlockShape::kTileCols / kColumnGroup; ++g) {
    // The scales of one group of columns at a time: there are no registers for more.
    asm volatile("" ::: "memory");
    float of_b[8];
    scale_b(g, of_b);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int half = i / 2 % 2, column = i / 4 * 2 + i % 2;
      const Sum sum = sums[16 * g + i];
      float& result = out[16 * g + i];
      if constexpr (kTame) {
        const float scale = __fmul_rn(scale_a[half], of_b[column]);
        result = __fmaf_rn(static_cast<float>(sum), scale, result);
      } else {
        result = __fadd_rn(ScaledExactly(sum, scale_a[half], of_b[column]), result);
      }
    }
  }
}

// Computes GEMMs of segments. `kByColumn` says that the columns of a tile may have different scales;
// otherwise they share one.
template <UnitOperands kOperands, bool kByColumn, bool kBf16>
struct BlockScaled {
  using Shape = BlockShape;
  using Problem = BlockProblem;
  using Sum = std::conditional_t<kOperands == UnitOperands::kInt8, int32_t, float>;
  static constexpr int kSums = Shape::kSumsPerThread;
  // Of three segments: a group writes those of one, waits for its slower threads, and then reads
  // those of the segment before, while a faster thread already writes the next ones.
  struct Scales {
    float of_columns[3][kByColumn ? Shape::kTileCols : 1];
  };

  // A thread's view of a tile.
  struct Part {
    int group;
    int row;  // of its first result; the other is 8 below
    int col;  // of the tile

    __device__ Part(const Tile& tile, int of_group)
        : group(of_group),
          row(static_cast<int>(tile.row) + group * 64 + Thread() / 32 * 16 + Thread() % 32 / 4),
          col(static_cast<int>(tile.col)) {}
    static __device__ int Thread() { return threadIdx.x % kGroup; }
    // Returns the first of its columns in the tile: 8 of each group of 32.
    static __device__ int FirstColumn() { return 8 * (threadIdx.x % 4); }
  };

  // The scales of one segment that a thread loads: of its two rows, and of the tile or of one of its
  // columns.
  struct ThreadScales {
    float a[2], b;

    __device__ bool AreTame() const {
      return IsTamePower(a[0]) && IsTamePower(a[1]) && IsTamePower(b);
    }
  };

  // Where a thread finds its scales of the next segment.
  struct ScaleIndices {
    int a[2], b;

    __device__ ScaleIndices(const Problem& p, const Part& part)
        : a{p.scales_a.First(part.row), p.scales_a.First(part.row + 8)},
          b(p.scales_b.First(kByColumn ? part.col + Part::Thread() : part.col)) {}

    // Returns the scales, and advances if there are `more` segments: nothing is read beyond the last.
    __device__ ThreadScales Take(const Problem& p, bool more) {
      const ThreadScales scales = {{p.scales_a.At(a[0]), p.scales_a.At(a[1])}, p.scales_b.At(b)};
      if (more) {
        a[0] += p.scales_a.segment_stride;
        a[1] += p.scales_a.segment_stride;
        b += p.scales_b.segment_stride;
      }
      return scales;
    }
  };

  // Hands a thread's scale of a column to its group. Returns true if all scales are tame.
  static __device__ __forceinline__ bool Share(const Part& part,
                                               const ThreadScales& scales,
                                               float* of_columns) {
    const bool tame = scales.AreTame();
    if constexpr (kByColumn) {
      of_columns[Part::Thread()] = scales.b;
      return AllOfGroup(part.group, tame);
    } else {
      return __all_sync(0xFFFFFFFFu, tame);
    }
  }

  // The sums of a segment and what they are scaled by.
  struct Segment {
    Sum sums[kSums];
    ThreadScales scales;
    bool tame;
    int turn;  // of the memory for scales of columns
  };

  static __device__ __forceinline__ void AddSegment(const Segment& segment,
                                                    const float* of_columns,
                                                    float (&out)[kSums]) {
    const auto scale_b = [&](int g, float(&of_b)[8]) {
      if constexpr (kByColumn) {
        const auto* from =
            reinterpret_cast<const float4*>(of_columns + kColumnGroup * g + Part::FirstColumn());
        const float4 low = from[0], high = from[1];
        of_b[0] = low.x, of_b[1] = low.y, of_b[2] = low.z, of_b[3] = low.w;
        of_b[4] = high.x, of_b[5] = high.y, of_b[6] = high.z, of_b[7] = high.w;
      } else {
#pragma unroll
        for (float& scale : of_b) scale = segment.scales.b;
      }
    };
    if (segment.tame) {
      Promote<true>(segment.sums, segment.scales.a, scale_b, out);
    } else {
      Promote<false>(segment.sums, segment.scales.a, scale_b, out);
    }
  }

  static __device__ void StoreTile(const Problem& p, const Part& part, const float (&out)[kSums]) {
#pragma unroll
    for (int g = 0; g < Shape::kTileCols / kColumnGroup; ++g) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) values[i] = out[16 * g + i / 2 * 4 + 2 * half + i % 2];
        const int64_t row = part.row + 8 * half;
        const int64_t col = part.col + kColumnGroup * g + Part::FirstColumn();
        if (row >= p.rows || col >= p.cols) continue;
        StoreEight<kBf16, kNanOfSums<Sum>>(p.out, row * p.cols + col, values);
      }
    }
  }

  // Computes the segments of one tile. Two of them take turns: while the tensor cores add up one,
  // the other is scaled and added to the results.
  template <typename Shared>
  struct Segments {
    const Problem& p;
    Shared& shared;
    const StageReader<Shape>& reader;
    Ring<Shape>& ring;
    int& turn;  // of the memory for scales of columns
    Part part;
    ScaleIndices indices;
    ThreadScales next;
    int k = 0;            // products enqueued so far
    int last_stage = -1;  // a stage that has not been reported as read

    __device__ Segments(const Problem& problem,
                        Shared& memory,
                        const StageReader<Shape>& of_stages,
                        Ring<Shape>& stages,
                        int& scale_turn,
                        const Part& of_tile)
        : p(problem),
          shared(memory),
          reader(of_stages),
          ring(stages),
          turn(scale_turn),
          part(of_tile),
          indices(p, part),
          next(indices.Take(p, p.segment < p.inner)) {}

    __device__ float* ColumnScales(const Segment& segment) const {
      return shared.scales_b[part.group].of_columns[segment.turn];
    }

    // Enqueues a stage and waits for all that were enqueued before.
    __device__ __forceinline__ void AddStage(bool accumulate, Sum (&sums)[kSums]) {
      EnqueueStage<kOperands>(shared, part.group, ring, accumulate, sums);
      k += kInnerBytes;
    }
    __device__ __forceinline__ void FinishStageBefore() {
      AwaitProducts<1>();
      if (last_stage >= 0) reader.HasRead(shared, last_stage);
      last_stage = ring.stage;
      ring.Next();
    }

    // Enqueues the sums of the next segment, and meanwhile adds those of the segment before, if any,
    // to the results.
    __device__ __forceinline__ void Add(Segment& segment,
                                        const Segment* before,
                                        float (&out)[kSums]) {
      const int end = ::min(k + p.segment, static_cast<int>(p.inner));
      AddStage(false, segment.sums);
      segment.turn = turn;
      turn = turn == 2 ? 0 : turn + 1;
      segment.scales = next;
      segment.tame = Share(part, next, ColumnScales(segment));
      next = indices.Take(p, end + p.segment < p.inner);
      FinishStageBefore();
      if (before != nullptr) AddSegment(*before, ColumnScales(*before), out);
      while (k < end) {
        AddStage(true, segment.sums);
        FinishStageBefore();
      }
    }
    __device__ __forceinline__ void Finish(const Segment& segment, float (&out)[kSums]) {
      AwaitProducts<0>();
      reader.HasRead(shared, last_stage);
      AddSegment(segment, ColumnScales(segment), out);
    }
  };

  template <typename Shared>
  static __device__ void MultiplyTiles(const Problem& p,
                                       Shared& shared,
                                       int group,
                                       BlockPlace<Shape> place) {
    const StageReader<Shape> reader(place);
    Ring<Shape> ring;
    int turn = 0;
    ForEachTile<Shape>(p, place, [&](const Tile& tile) {
      Segments<Shared> segments(p, shared, reader, ring, turn, Part(tile, group));
      float out[kSums];
#pragma unroll
      for (float& result : out) result = -0.0f;  // the only number that changes no t
      Segment even, odd;
      segments.Add(even, nullptr, out);
      while (true) {
        if (segments.k >= p.inner) {
          segments.Finish(even, out);
          break;
        }
        segments.Add(odd, &even, out);
        if (segments.k >= p.inner) {
          segments.Finish(odd, out);
          break;
        }
        segments.Add(even, &odd, out);
      }
      StoreTile(p, segments.part, out);
    });
  }
};

}  // namespace
}  // namespace numsim::cuda
