// Computation of scales on the device, and quantisation of rows that are read once.
#include <fmt/format.h>

#include <algorithm>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantized_launch.h"

namespace numsim {
namespace cuda {
namespace {

// A thread keeps this many elements of its row in registers.
constexpr uint32_t kPerThread = 32;
constexpr uint32_t kMaxThreads = 1024;
// The number of rows per block if one warp suffices for a row.
constexpr uint32_t kWarpRows = 4;

__global__ void MakeScales(ScaleFactory maker,
                           bool reads,
                           const float* tensor_absmax,
                           size_t n,
                           float* absmax,
                           float* inv_scales) {
  if (tensor_absmax != nullptr) maker = maker.ForTensor(*tensor_absmax);
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += gridDim.x * size_t{blockDim.x}) {
    const Scale made = maker(reads ? absmax[i] : 0.0f);
    absmax[i] = made.scale;
    inv_scales[i] = made.inv_scale;
  }
}

__global__ void MakeTensorScale(ScaleFactory maker,
                                const float* tensor_absmax,
                                float* tensor_scale) {
  *tensor_scale = maker.ForTensor(*tensor_absmax).TensorScale();
}

__global__ void SetScale(Scale given, float* scale, float* inv_scale) {
  *scale = given.scale;
  *inv_scale = given.inv_scale;
}

// Computes the maximum, scale and codes of row blockIdx.x * blockDim.y + threadIdx.y. In between,
// the row stays in the registers of its blockDim.x threads.
template <class E, class Codec>
__global__ void __launch_bounds__(kMaxThreads) QuantizeRows(const void* __restrict__ in,
                                                            size_t rows,
                                                            uint32_t row_vectors,
                                                            ScaleFactory maker,
                                                            uint8_t* __restrict__ codes,
                                                            float* __restrict__ scales,
                                                            const __grid_constant__ Codec codec) {
  constexpr int kVectors = kPerThread / E::kPerVector;
  const size_t row = blockIdx.x * size_t{blockDim.y} + threadIdx.y;
  if (row >= rows) return;  // true only for whole warps, and never in blocks of one row
  const size_t first = row * row_vectors;
  uint4 loaded[kVectors] = {};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const uint32_t v = i * blockDim.x + threadIdx.x;
    if (v < row_vectors) loaded[i] = LoadVector(in, first + v);
  }
  uint32_t max = E::kNone;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) max = MaxOfVector<E>(max, loaded[i]);
  const Scale scale = maker(MaximumOf(MaxOfRow(E::Joined(max))));
  if (threadIdx.x == 0) scales[row] = scale.scale;
  const float m[4] = {scale.inv_scale, scale.inv_scale, scale.inv_scale, scale.inv_scale};
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const uint32_t v = i * blockDim.x + threadIdx.x;
    if (v < row_vectors) StoreCodes<E>(codec, loaded[i], m, codes, first + v);
  }
}

template <class E, class Codec>
void LaunchRows(const Codec& codec, const RowsCall& call) {
  const ConstFloatSpan& in = call.in;
  const size_t warps = CeilDiv(in.cols, size_t{32} * kPerThread);
  const uint32_t rows_of_block = warps == 1 ? kWarpRows : 1;
  const size_t blocks = CeilDiv(in.rows, rows_of_block);
  const dim3 threads(static_cast<uint32_t>(warps) * 32, rows_of_block);
  QuantizeRows<E, Codec><<<static_cast<uint32_t>(blocks), threads, 0, Raw(in.place.Stream())>>>(
      in.data,
      in.rows,
      static_cast<uint32_t>(in.cols / E::kPerVector),
      call.maker,
      call.codes,
      call.scales,
      codec);
  CheckLaunch("QuantizeRows", Text(in.Shape()));
}

}  // namespace
}  // namespace cuda

void MakeScalesOnDevice(const ScaleFactory& maker,
                        bool reads_maxima,
                        const float* tensor_absmax,
                        MatrixSpan<float> absmax,
                        MatrixSpan<float> inv_scales) {
  if (absmax.Empty()) return;
  const size_t blocks = std::min<size_t>(CeilDiv(absmax.Elements(), 128), 4096);
  cuda::MakeScales<<<static_cast<uint32_t>(blocks), 128, 0, cuda::Raw(absmax.place.Stream())>>>(
      maker, reads_maxima, tensor_absmax, absmax.Elements(), absmax.data, inv_scales.data);
  cuda::CheckLaunch("MakeScales", fmt::format("{} scales", absmax.Elements()));
}

void MakeTensorScaleOnDevice(const ScaleFactory& maker,
                             const float* tensor_absmax,
                             float* tensor_scale,
                             DeviceStream& stream) {
  cuda::MakeTensorScale<<<1, 1, 0, cuda::Raw(stream)>>>(maker, tensor_absmax, tensor_scale);
  cuda::CheckLaunch("MakeTensorScale", "one scale");
}

void SetScaleOnDevice(const Scale& given, float* scale, float* inv_scale, DeviceStream& stream) {
  cuda::SetScale<<<1, 1, 0, cuda::Raw(stream)>>>(given, scale, inv_scale);
  cuda::CheckLaunch("SetScale", "one scale");
}

bool QuantizeRowsOnDevice(const RowsCall& call) {
  if (call.plan.rounding.mode == RoundingMode::kStochastic) return cuda::QuantizeRowsDrawn(call);
  const MatrixShape shape = call.in.Shape();
  if (shape.Elements() == 0 || shape.cols > cuda::kPerThread * cuda::kMaxThreads ||
      shape.rows >= (size_t{1} << 31) || !cuda::HasVectorRows(call.in) ||
      !cuda::IsAligned(call.codes, 8)) {
    return false;
  }
  return cuda::WithCodec(call.plan, [&](auto codec) {
    cuda::WithElements(call.in.element,
                       [&](auto elements) { cuda::LaunchRows<decltype(elements)>(codec, call); });
  });
}

}  // namespace numsim
