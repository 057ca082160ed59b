#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/gemm/internal/gemm_hopper_store_cuda.cuh"
#include "numsim/gemm/internal/gemm_prepare_device.h"
#include "numsim/gemm/internal/gemm_store_device.h"

namespace numsim::cuda {
namespace {

constexpr unsigned kColumnThreads = 32, kRowThreads = 8;
constexpr unsigned kMost = 65535;  // largest second dimension of a grid

// Scales of rows or columns: data[index * stride], or 1 without data.
struct Scales {
  const float* data;
  size_t stride;

  __device__ float At(size_t index) const {
    return data == nullptr ? 1.0f : __ldg(data + index * stride);
  }
};

template <typename Sum>
__device__ float Scaled(Sum sum, float row, float column, float nan) {
  const float x = cuda::ScaledExactly(sum, row, column);
  return x == x ? x : nan;
}

__device__ uint32_t Bf16Pair(float low, float high) {
  return cuda::RoundToBf16(low) | cuda::RoundToBf16(high) << 16;
}

__device__ void Put(float x, float* out) { *out = x; }
__device__ void Put(float x, uint16_t* out) { *out = static_cast<uint16_t>(cuda::RoundToBf16(x)); }

__device__ void PutEight(const float (&x)[8], float* out) {
  auto* to = reinterpret_cast<float4*>(out);
  to[0] = make_float4(x[0], x[1], x[2], x[3]);
  to[1] = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ void PutEight(const float (&x)[8], uint16_t* out) {
  *reinterpret_cast<uint4*>(out) = make_uint4(
      Bf16Pair(x[0], x[1]), Bf16Pair(x[2], x[3]), Bf16Pair(x[4], x[5]), Bf16Pair(x[6], x[7]));
}

__device__ void GetEight(const int32_t* from, int32_t (&sums)[8]) {
  const auto* in = reinterpret_cast<const int4*>(from);
  const int4 low = in[0], high = in[1];
  sums[0] = low.x, sums[1] = low.y, sums[2] = low.z, sums[3] = low.w;
  sums[4] = high.x, sums[5] = high.y, sums[6] = high.z, sums[7] = high.w;
}
__device__ void GetEight(const float* from, float (&sums)[8]) {
  const auto* in = reinterpret_cast<const float4*>(from);
  const float4 low = in[0], high = in[1];
  sums[0] = low.x, sums[1] = low.y, sums[2] = low.z, sums[3] = low.w;
  sums[4] = high.x, sums[5] = high.y, sums[6] = high.z, sums[7] = high.w;
}

template <typename Sum, typename Out>
struct Store {
  const Sum* sums;
  size_t stride;
  Out* out;
  MatrixShape shape;
  Scales rows, columns;
  float nan;
};

// Stores eight elements of a row per thread. Requires a multiple of 8 columns and alignment to 16
// bytes. Sums and results may share memory: a thread reads its sums before it writes there.
template <typename Sum, typename Out>
__global__ void __launch_bounds__(kColumnThreads* kRowThreads) StoreEights(Store<Sum, Out> store) {
  const size_t j = 8 * (size_t{blockIdx.x} * kColumnThreads + threadIdx.x);
  if (j >= store.shape.cols) return;
  float columns[8];
#pragma unroll
  for (int v = 0; v < 8; ++v) columns[v] = store.columns.At(j + v);
  const size_t step = size_t{gridDim.y} * kRowThreads;
  for (size_t i = size_t{blockIdx.y} * kRowThreads + threadIdx.y; i < store.shape.rows; i += step) {
    Sum sums[8];
    float x[8];
    GetEight(store.sums + i * store.stride + j, sums);
    const float row = store.rows.At(i);
#pragma unroll
    for (int v = 0; v < 8; ++v) x[v] = Scaled(sums[v], row, columns[v], store.nan);
    PutEight(x, store.out + i * store.shape.cols + j);
  }
}

// Stores one element per thread, for any shape and alignment.
template <typename Sum, typename Out>
__global__ void __launch_bounds__(kColumnThreads* kRowThreads) StoreSingles(Store<Sum, Out> store) {
  const size_t j = size_t{blockIdx.x} * kColumnThreads + threadIdx.x;
  if (j >= store.shape.cols) return;
  const float column = store.columns.At(j);
  const size_t step = size_t{gridDim.y} * kRowThreads;
  for (size_t i = size_t{blockIdx.y} * kRowThreads + threadIdx.y; i < store.shape.rows; i += step) {
    const Sum sum = store.sums[i * store.stride + j];
    Put(Scaled(sum, store.rows.At(i), column, store.nan), store.out + i * store.shape.cols + j);
  }
}

Scales ScalesOf(const GemmOperand& x) {
  const size_t count = ScalesOfRows(x);
  if (count == 0) return {nullptr, 0};
  return {x.scales.data.data, count > 1 ? size_t{1} : size_t{0}};
}

template <typename Sum, typename Out>
void Launch(const Store<Sum, Out>& store, DeviceStream& stream) {
  const bool eights = store.shape.cols % 8 == 0 && store.stride % 8 == 0 && IsAligned(store.sums) &&
                      IsAligned(store.out);
  const size_t across = kColumnThreads * (eights ? 8 : 1);
  const size_t blocks = (store.shape.rows + kRowThreads - 1) / kRowThreads;
  // Several rows per thread, so that the scales of columns are read and widened only once.
  const size_t most = std::min<size_t>(kMost, std::max<size_t>(1, blocks / 8));
  const dim3 grid(static_cast<unsigned>((store.shape.cols + across - 1) / across),
                  static_cast<unsigned>(most));
  const dim3 threads(kColumnThreads, kRowThreads);
  if (eights) {
    StoreEights<<<grid, threads, 0, Raw(stream)>>>(store);
  } else {
    StoreSingles<<<grid, threads, 0, Raw(stream)>>>(store);
  }
  CheckLaunch("scaled store", fmt::format("{} x {}", store.shape.rows, store.shape.cols));
}

template <typename Sum>
void StoreFrom(const DeviceSums& sums,
               const Scales& rows,
               const Scales& columns,
               float nan,
               FloatSpan out,
               DeviceStream& stream) {
  const auto* from = static_cast<const Sum*>(sums.data);
  if (out.element == Element::kFloat32) {
    auto* to = out.Float32().data;
    return Launch(Store<Sum, float>{from, sums.stride, to, out.Shape(), rows, columns, nan},
                  stream);
  }
  auto* to = out.Bf16().data;
  Launch(Store<Sum, uint16_t>{from, sums.stride, to, out.Shape(), rows, columns, nan}, stream);
}

}  // namespace

void StoreScaled(
    const DeviceSums& sums, const GemmOperand& a, const GemmOperand& b, float nan, FloatSpan out) {
  if (out.Elements() == 0) return;
  DeviceStream& stream = out.place.Stream();
  const Scales rows = ScalesOf(a), columns = ScalesOf(b);
  if (sums.type == SumType::kInt32) {
    StoreFrom<int32_t>(sums, rows, columns, nan, out, stream);
  } else {
    StoreFrom<float>(sums, rows, columns, nan, out, stream);
  }
}

void CopyRows(const void* in,
              size_t in_pitch,
              void* out,
              size_t out_pitch,
              size_t row_bytes,
              size_t rows,
              DeviceStream& stream) {
  if (rows == 0 || row_bytes == 0) return;
  NUMSIM_CUDA(
      cudaMemcpy2DAsync(
          out, out_pitch, in, in_pitch, row_bytes, rows, cudaMemcpyDeviceToDevice, Raw(stream)),
      "{} rows of {} bytes",
      rows,
      row_bytes);
}

}  // namespace numsim::cuda
