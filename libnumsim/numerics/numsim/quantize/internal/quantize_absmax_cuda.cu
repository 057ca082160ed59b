// Absmax on the device. Maxima are combined by atomics on the bits of non-negative floats, whose
// order is that of integers. A maximum does not depend on the order of its operands.
#include <fmt/format.h>

#include <algorithm>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantize_device.h"

namespace numsim::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kUnroll = 4;
// Enough blocks to fill a multiprocessor, and short enough ones that the last does not run long
// alone.
constexpr size_t kBlocksPerMultiprocessor = 16;
// The number of elements of a row that one warp handles.
constexpr uint32_t kRun = 4096;

size_t BlocksOfDevice() { return Device().multiprocessors * kBlocksPerMultiprocessor; }

__device__ void RaiseTo(float* maximum, float x) {
  atomicMax(reinterpret_cast<int*>(maximum), __float_as_int(x));
}

// Raises *maximum to that of all n elements, reading the first `vectors` vectors as such. kAll:
// infinities count, and the result is NaN if any element is NaN.
template <class E, bool kAll>
__global__ void __launch_bounds__(kThreads)
    AbsmaxFlat(const void* __restrict__ in, size_t n, size_t vectors, float* maximum) {
  const size_t thread = blockIdx.x * size_t{kThreads} + threadIdx.x;
  const size_t threads = gridDim.x * size_t{kThreads};
  uint32_t max = kAll ? 0 : E::kNone;
  size_t v = thread;
  for (; v + (kUnroll - 1) * threads < vectors; v += kUnroll * threads) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) loaded[u] = LoadVector(in, v + u * threads);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) max = MaxOfVector<E, kAll>(max, loaded[u]);
  }
  for (; v < vectors; v += threads) max = MaxOfVector<E, kAll>(max, LoadVector(in, v));
  int joined = E::template Joined<kAll>(max);
  for (size_t i = vectors * E::kPerVector + thread; i < n; i += threads) {
    const float x = E::At(in, i);
    const int biased = kAll ? static_cast<int>(Bits(x) & 0x7FFFFFFFu) : FiniteMagnitude(x);
    joined = ::max(joined, biased);
  }
  __shared__ int of_warps[kWarps];
  const int of_warp = __reduce_max_sync(~0u, joined);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int of_other : of_warps) joined = ::max(joined, of_other);
  float result = MaximumOf(joined);
  if constexpr (kAll) result = __int_as_float(joined > 0x7F800000 ? 0x7FC00000 : joined);
  RaiseTo(maximum, result);
}

// Computes the maxima of tiles whose width is a multiple of a vector. A warp handles up to kRun
// elements of a row at a time, all of one tile.
template <class E>
__global__ void __launch_bounds__(kThreads) AbsmaxRuns(
    const void* __restrict__ in, MatrixShape shape, TileIndex index, uint32_t runs, float* absmax) {
  const uint32_t lane = threadIdx.x % 32;
  const size_t warps = gridDim.x * size_t{kWarps};
  const size_t per_row = index.across * runs;
  const size_t row_vectors = shape.cols / E::kPerVector;
  for (size_t i = blockIdx.x * size_t{kWarps} + threadIdx.x / 32; i < shape.rows * per_row;
       i += warps) {
    const size_t row = i / per_row;
    const size_t of_row = i % per_row;
    const size_t tile = of_row / runs;
    const size_t tile_begin = tile * index.tile_cols;
    const size_t tile_end = ::min(tile_begin + index.tile_cols, shape.cols);
    const size_t begin = tile_begin + of_row % runs * kRun;
    if (begin >= tile_end) continue;
    const uint32_t vectors = ::min(size_t{kRun}, tile_end - begin) / E::kPerVector;
    const size_t first = row * row_vectors + begin / E::kPerVector;
    uint32_t max = E::kNone;
    uint32_t v = lane;
    for (; v + 96 < vectors; v += 128) {
      uint4 loaded[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) loaded[u] = LoadVector(in, first + v + 32 * u);
#pragma unroll
      for (int u = 0; u < 4; ++u) max = MaxOfVector<E>(max, loaded[u]);
    }
    for (; v < vectors; v += 32) max = MaxOfVector<E>(max, LoadVector(in, first + v));
    const int of_run = __reduce_max_sync(~0u, E::Joined(max));
    if (lane == 0) RaiseTo(absmax + row / index.tile_rows * index.across + tile, MaximumOf(of_run));
  }
}

// Computes the maxima of columns. A block handles 32 vectors of columns and `band` rows; each of
// its 8 warps handles every eighth row.
template <class E>
__global__ void __launch_bounds__(kThreads) AbsmaxColumns(const void* __restrict__ in,
                                                          MatrixShape shape,
                                                          size_t band,
                                                          float* __restrict__ absmax) {
  constexpr int kPerWord = E::kPerVector / 4;
  const size_t row_vectors = shape.cols / E::kPerVector;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t across = (row_vectors + 31) / 32;
  const size_t vector = blockIdx.x % across * 32 + lane;
  const size_t begin = blockIdx.x / across * band;
  const size_t end = ::min(begin + band, shape.rows);
  uint32_t max[4] = {E::kNone, E::kNone, E::kNone, E::kNone};
  const auto take = [&](const uint4& v) {
    max[0] = E::Max(max[0], v.x);
    max[1] = E::Max(max[1], v.y);
    max[2] = E::Max(max[2], v.z);
    max[3] = E::Max(max[3], v.w);
  };
  if (vector < row_vectors) {
    size_t row = begin + warp;
    for (; row + (kUnroll - 1) * kWarps < end; row += kUnroll * kWarps) {
      uint4 loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        loaded[u] = LoadVector(in, (row + u * kWarps) * row_vectors + vector);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) take(loaded[u]);
    }
    for (; row < end; row += kWarps) take(LoadVector(in, row * row_vectors + vector));
  }
  __shared__ uint32_t of_warps[kWarps][4][32];
#pragma unroll
  for (int i = 0; i < 4; ++i) of_warps[warp][i][lane] = max[i];
  __syncthreads();
  if (warp >= 4 || vector >= row_vectors) return;
    // Word `warp` of the vector holds one column, or two for bf16.
#pragma unroll
  for (int k = 0; k < kPerWord; ++k) {
    int joined = 0;
    for (int w = 0; w < kWarps; ++w) {
      const uint32_t word = of_warps[w][warp][lane];
      joined = ::max(joined, static_cast<int>(kPerWord == 1 ? word : word >> (16 * k) << 16));
    }
    RaiseTo(absmax + vector * E::kPerVector + warp * kPerWord + k, MaximumOf(joined));
  }
}

// Computes the maxima of any layout and alignment. A warp handles up to kRun elements of a row at a
// time, and each lane every 32nd of them.
template <class E>
__global__ void __launch_bounds__(kThreads)
    AbsmaxAny(const void* __restrict__ in, MatrixShape shape, TileIndex index, float* absmax) {
  const size_t per_row = (shape.cols + kRun - 1) / kRun;
  const size_t warps = gridDim.x * size_t{kWarps};
  for (size_t i = blockIdx.x * size_t{kWarps} + threadIdx.x / 32; i < shape.rows * per_row;
       i += warps) {
    const size_t row = i / per_row, begin = i % per_row * kRun;
    const size_t end = ::min(begin + kRun, shape.cols);
    size_t at = index(row, begin);
    int max = kNoMaximum;
    for (size_t col = begin + threadIdx.x % 32; col < end; col += 32) {
      const size_t scale = index(row, col);
      if (scale != at) {
        if (max != kNoMaximum) RaiseTo(absmax + at, MaximumOf(max));
        max = kNoMaximum;
        at = scale;
      }
      max = ::max(max, FiniteMagnitude(E::At(in, row * shape.cols + col)));
    }
    if (max != kNoMaximum) RaiseTo(absmax + at, MaximumOf(max));
  }
}

template <class E, bool kAll>
void LaunchFlat(ConstFloatSpan in, float* absmax, DeviceStream& stream) {
  const size_t n = in.Elements();
  const size_t vectors = IsAligned(in.data, 16) ? n / E::kPerVector : 0;
  const size_t wanted = CeilDiv(n, size_t{kThreads} * kUnroll * E::kPerVector);
  const size_t blocks = std::min(wanted, BlocksOfDevice());
  AbsmaxFlat<E, kAll><<<blocks, kThreads, 0, Raw(stream)>>>(in.data, n, vectors, absmax);
  CheckLaunch("AbsmaxFlat", Text(in.Shape()));
}

template <class E>
void LaunchRuns(ConstFloatSpan in, const TileIndex& index, float* absmax, DeviceStream& stream) {
  const size_t runs = CeilDiv(index.tile_cols, size_t{kRun});
  const size_t items = in.rows * index.across * runs;
  const size_t blocks = std::min(CeilDiv(items, size_t{kWarps}), 4 * BlocksOfDevice());
  AbsmaxRuns<E><<<blocks, kThreads, 0, Raw(stream)>>>(
      in.data, in.Shape(), index, static_cast<uint32_t>(runs), absmax);
  CheckLaunch("AbsmaxRuns", Text(in.Shape()));
}

template <class E>
void LaunchColumns(ConstFloatSpan in, float* absmax, DeviceStream& stream) {
  const size_t across = CeilDiv(in.cols / E::kPerVector, 32);
  // Use bands of at least 64 rows, and about as many blocks as fill the device.
  const size_t bands = std::max<size_t>(BlocksOfDevice() / across, 1);
  const size_t band = std::max<size_t>(CeilDiv(in.rows, bands), 64);
  const size_t blocks = across * CeilDiv(in.rows, band);
  AbsmaxColumns<E><<<blocks, kThreads, 0, Raw(stream)>>>(in.data, in.Shape(), band, absmax);
  CheckLaunch("AbsmaxColumns", Text(in.Shape()));
}

template <class E>
void LaunchAny(ConstFloatSpan in, const TileIndex& index, float* absmax, DeviceStream& stream) {
  const size_t items = in.rows * CeilDiv(in.cols, size_t{kRun});
  const size_t blocks = std::min(CeilDiv(items, size_t{kWarps}), 4 * BlocksOfDevice());
  AbsmaxAny<E><<<blocks, kThreads, 0, Raw(stream)>>>(in.data, in.Shape(), index, absmax);
  CheckLaunch("AbsmaxAny", Text(in.Shape()));
}

template <class E>
void LaunchAbsmax(ConstFloatSpan in,
                  const ScaleLayout& layout,
                  float* absmax,
                  DeviceStream& stream) {
  const TileIndex index{ScaleGrid(in.Shape(), layout)};
  const bool one = index.tile_rows >= in.rows && index.tile_cols >= in.cols;
  if (one) return LaunchFlat<E, false>(in, absmax, stream);
  if (!HasVectorRows(in)) return LaunchAny<E>(in, index, absmax, stream);
  // Only the last tile of a row may be narrower than the others.
  const bool whole_vectors = index.across == 1 || index.tile_cols % E::kPerVector == 0;
  if (whole_vectors) return LaunchRuns<E>(in, index, absmax, stream);
  if (index.tile_cols == 1 && index.tile_rows >= in.rows) {
    return LaunchColumns<E>(in, absmax, stream);
  }
  LaunchAny<E>(in, index, absmax, stream);
}

}  // namespace

void Absmax(ConstFloatSpan in, const ScaleLayout& layout, MatrixSpan<float> absmax) {
  if (absmax.Empty()) return;
  DeviceStream& stream = in.place.Stream();
  device_memory::FillBytes(absmax.data, 0, absmax.Bytes(), stream);
  if (in.Elements() == 0) return;
  WithElements(in.element, [&](auto elements) {
    LaunchAbsmax<decltype(elements)>(in, layout, absmax.data, stream);
  });
}

void AbsmaxOfAll(ConstFloatSpan in, MatrixSpan<float> absmax) {
  DeviceStream& stream = in.place.Stream();
  device_memory::FillBytes(absmax.data, 0, sizeof(float), stream);
  if (in.Elements() == 0) return;
  WithElements(in.element, [&](auto elements) {
    LaunchFlat<decltype(elements), true>(in, absmax.data, stream);
  });
}

}  // namespace numsim::cuda
