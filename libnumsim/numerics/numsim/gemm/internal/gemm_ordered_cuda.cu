#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/base/require.h"
#include "numsim/gemm/internal/gemm_ordered_device.h"
#include "numsim/gemm/internal/gemm_scaled_sum.h"

namespace numsim::cuda {
namespace {

constexpr int kSide = 16;                // threads along each side of a block
constexpr int kThreads = kSide * kSide;  // of a block
constexpr int kDepth = 8;                // products between two loads of shared memory

struct Problem {
  OrderedOperand a, b;
  OrderedSums sums;
  void* out;
  bool bf16;
};

// Loads kTile vectors from `first` on, elements begin .. begin + kDepth - 1, as tile[k][vector].
// Elements beyond `end` and vectors beyond the last are left as they are: nothing reads them.
template <int kTile>
__device__ void Load(
    const OrderedOperand& x, size_t first, size_t begin, size_t end, float (*tile)[kTile + 4]) {
  for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
    // Neighbouring threads read neighbouring addresses.
    const int vector = x.transposed ? i % kTile : i / kDepth;
    const int depth = x.transposed ? i / kTile : i % kDepth;
    const size_t row = first + vector, k = begin + depth;
    if (row >= x.rows || k >= end) continue;
    tile[depth][vector] = x.values[x.transposed ? k * x.rows + row : row * x.inner + k];
  }
}

__device__ inline float Fused(float a, float b, float acc) { return __fmaf_rn(a, b, acc); }
__device__ inline double Fused(float a, float b, double acc) {
  return __fma_rn(static_cast<double>(a), static_cast<double>(b), acc);
}

// Adds the products begin .. end - 1 of kPer x kPer results to `acc`, in order. The thread's
// vectors are kSide apart, beginning with its own number.
template <typename Acc, int kPer>
__device__ void AddProducts(const Problem& p, size_t begin, size_t end, Acc (&acc)[kPer][kPer]) {
  constexpr int kTile = kSide * kPer;
  __shared__ float tile_a[kDepth][kTile + 4], tile_b[kDepth][kTile + 4];
  const int x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  for (size_t k = begin; k < end; k += kDepth) {
    Load<kTile>(p.a, blockIdx.y * size_t{kTile}, k, end, tile_a);
    Load<kTile>(p.b, blockIdx.x * size_t{kTile}, k, end, tile_b);
    __syncthreads();
    const int depths = end - k < kDepth ? static_cast<int>(end - k) : kDepth;
#pragma unroll 4
    for (int d = 0; d < depths; ++d) {
      float a[kPer], b[kPer];
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        a[i] = tile_a[d][y + i * kSide];
        b[i] = tile_b[d][x + i * kSide];
      }
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
#pragma unroll
        for (int j = 0; j < kPer; ++j) acc[i][j] = Fused(a[i], b[j], acc[i][j]);
      }
    }
    __syncthreads();
  }
}

__device__ float ScaleAt(const OrderedOperand& x, size_t row, size_t segment) {
  if (x.scales == nullptr) return 1;
  return x.scales[row / x.row_group * x.row_stride + segment * x.segment_stride];
}

template <typename Acc, int kPer, bool kPromotes>
__global__ void __launch_bounds__(kThreads) Ordered(Problem p) {
  constexpr int kTile = kSide * kPer;
  const size_t row = blockIdx.y * size_t{kTile} + threadIdx.x / kSide;
  const size_t col = blockIdx.x * size_t{kTile} + threadIdx.x % kSide;
  const size_t length = p.sums.segment;
  float out[kPer][kPer];
  for (size_t segment = 0; segment * length < p.a.inner; ++segment) {
    const size_t begin = segment * length;
    const size_t end = ::min(begin + length, p.a.inner);
    Acc sum[kPer][kPer] = {};
    if constexpr (kPromotes) {
      for (size_t part = begin; part < end; part += p.sums.promote) {
        Acc of_part[kPer][kPer] = {};
        AddProducts(p, part, ::min(part + p.sums.promote, end), of_part);
        for (int i = 0; i < kPer; ++i) {
          for (int j = 0; j < kPer; ++j) sum[i][j] += of_part[i][j];
        }
      }
    } else {
      AddProducts(p, begin, end, sum);
    }
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const size_t r = row + i * kSide;
      const float scale_a = r < p.a.rows ? ScaleAt(p.a, r, segment) : 1;
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        const size_t c = col + j * kSide;
        const float scale_b = c < p.b.rows ? ScaleAt(p.b, c, segment) : 1;
        float t = ScaledExactly(sum[i][j], scale_a, scale_b);
        if (segment != 0) t = t + out[i][j];
        out[i][j] = t == t ? t : p.sums.nan;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const size_t r = row + i * kSide, c = col + j * kSide;
      if (r >= p.a.rows || c >= p.b.rows) continue;
      const size_t at = r * p.b.rows + c;
      if (p.bf16) {
        static_cast<uint16_t*>(p.out)[at] = static_cast<uint16_t>(RoundToBf16(out[i][j]));
      } else {
        static_cast<float*>(p.out)[at] = out[i][j];
      }
    }
  }
}

template <typename Acc, int kPer, bool kPromotes>
void Launch(const Problem& p, DeviceStream& stream) {
  constexpr size_t kTile = size_t{kSide} * kPer;
  const size_t across = (p.b.rows + kTile - 1) / kTile, down = (p.a.rows + kTile - 1) / kTile;
  NUMSIM_REQUIRE(down <= 65535 && across < (size_t{1} << 31),
                 "Gemm: {} x {} results of one product after another, expected at most {} rows",
                 p.a.rows,
                 p.b.rows,
                 65535 * kTile);
  const dim3 blocks(static_cast<unsigned>(across), static_cast<unsigned>(down));
  Ordered<Acc, kPer, kPromotes><<<blocks, kThreads, 0, Raw(stream)>>>(p);
  CheckLaunch("MultiplyOrdered", fmt::format("{} x {}", p.a.rows, p.b.rows));
}

}  // namespace

void MultiplyOrdered(const OrderedOperand& a,
                     const OrderedOperand& b,
                     const OrderedSums& sums,
                     FloatSpan out) {
  const Problem p = {a, b, sums, out.data, out.element == Element::kBfloat16};
  DeviceStream& stream = out.place.Stream();
  if (sums.float64) return Launch<double, 4, false>(p, stream);
  if (sums.promote != 0) return Launch<float, 4, true>(p, stream);
  Launch<float, 8, false>(p, stream);
}

}  // namespace numsim::cuda
