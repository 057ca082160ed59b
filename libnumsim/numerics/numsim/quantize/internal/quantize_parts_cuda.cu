// Quantisation for every format, rounding, layout and alignment: a part of the elements at a time is
// scaled to float32 and encoded by the cast. Serves the calls that the kernels with one read do not.
#include <fmt/format.h>

#include <algorithm>

#include "numsim/backend/device_context.h"
#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/cast/cast.h"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantize_launch_cuda.cuh"
#include "numsim/quantize/shared/transpose_device.h"

namespace numsim::cuda {
namespace {

// Elements of a part: as many as keep the device busy, 32 MiB of float32. A multiple of the tiles of
// the random stream.
constexpr size_t kPart = size_t{1} << 23;
constexpr int kThreads = 256;
constexpr int kRun = 8;  // elements of a thread, in one row

// Memory that a context keeps from one call to the next.
struct PartMemory {
  explicit PartMemory(Place place) : scaled(place), codes(place) {}

  Buffer<float> scaled;
  Buffer<uint8_t> codes;  // in order, of calls that want them transposed alone
};

// The elements of a part: `count` ones from row `row`, column `col` on.
struct Part {
  size_t row, col;
  uint32_t count;
};

// Writes the products of kRun neighbouring elements with their factors. `values` is aligned to 16
// bytes.
template <class E, typename Index>
__device__ void ScaleRun(const void* values,
                         const float* inv_scales,
                         const TileIndex& index,
                         Index row,
                         Index col,
                         float* to) {
  constexpr int kVectors = kRun / E::kPerVector;
  const bool shared = index.across == 1 || index.tile_cols % kRun == 0;
  const float first = __ldg(inv_scales + index(row, col));
  float p[kRun];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const uint4 loaded = LoadVector(values, v);
#pragma unroll
    for (int q = 0; q < E::kQuads; ++q) E::Quad(loaded, q, p + v * E::kPerVector + 4 * q);
  }
#pragma unroll
  for (int i = 0; i < kRun; ++i) {
    const float factor = shared ? first : __ldg(inv_scales + index(row, col + i));
    p[i] = __uint_as_float(ProductBits(p[i], factor));
  }
#pragma unroll
  for (int i = 0; i < kRun; i += 4) {
    reinterpret_cast<float4*>(to)[i / 4] = make_float4(p[i], p[i + 1], p[i + 2], p[i + 3]);
  }
}

// kRuns: rows and the part consist of runs of kRun elements that are aligned to 16 bytes.
template <class E, typename Index, bool kRuns>
__global__ void __launch_bounds__(kThreads) ScalePart(const void* __restrict__ in,
                                                      Index cols,
                                                      TileIndex index,
                                                      const float* __restrict__ inv_scales,
                                                      Part part,
                                                      float* __restrict__ scaled) {
  const size_t first = part.row * cols + part.col;
  const uint32_t i = (blockIdx.x * kThreads + threadIdx.x) * (kRuns ? kRun : 1);
  if (i >= part.count) return;
  const Index along = static_cast<Index>(part.col) + i;
  const Index row = static_cast<Index>(part.row) + along / cols, col = along % cols;
  if constexpr (kRuns) {
    const auto* const values = static_cast<const uint8_t*>(in) + (first + i) * E::kBytes;
    ScaleRun<E>(values, inv_scales, index, row, col, scaled + i);
  } else {
    scaled[i] =
        __uint_as_float(ProductBits(E::At(in, first + i), __ldg(inv_scales + index(row, col))));
  }
}

template <class E, typename Index, bool kRuns>
void Scale(const QuantizeCall& call, size_t begin, size_t count, float* scaled) {
  const MatrixShape shape = call.in.Shape();
  const Part part{begin / shape.cols, begin % shape.cols, static_cast<uint32_t>(count)};
  const auto blocks = static_cast<uint32_t>(CeilDiv(count, size_t{kThreads} * (kRuns ? kRun : 1)));
  ScalePart<E, Index, kRuns><<<blocks, kThreads, 0, Raw(call.in.place.Stream())>>>(
      call.in.data,
      static_cast<Index>(shape.cols),
      TileIndex{ScaleGrid(shape, call.layout)},
      call.inv_scales,
      part,
      scaled);
  CheckLaunch("ScalePart", Text(shape));
}

template <class E, typename Code>
void QuantizeAs(const QuantizeCall& call, Code* codes, float* scaled) {
  const MatrixShape shape = call.in.Shape();
  // Sums of a column and an index within a part must fit, too.
  const bool narrow = FitsUint32(shape) && shape.cols + kPart < (uint64_t{1} << 32);
  const bool runs = narrow && shape.cols % kRun == 0 && IsAligned(call.in.data, 16);
  for (size_t begin = 0; begin < shape.Elements(); begin += kPart) {
    const size_t count = std::min(kPart, shape.Elements() - begin);
    if (runs) {
      Scale<E, uint32_t, true>(call, begin, count, scaled);
    } else if (narrow) {
      Scale<E, uint32_t, false>(call, begin, count, scaled);
    } else {
      Scale<E, size_t, false>(call, begin, count, scaled);
    }
    Encode(call.plan,
           {scaled, {1, count}, call.in.place},
           MatrixSpan<Code>(codes + begin, {1, count}, call.in.place),
           {call.random.stream, call.random.first_index + begin});
  }
}

}  // namespace

void QuantizeInParts(const QuantizeCall& call, DeviceStream& stream) {
  const MatrixShape shape = call.in.Shape();
  const auto bytes = static_cast<size_t>(call.plan.format.StorageBytes());
  auto& memory = call.in.place.Context().Get<PartMemory>();
  memory.scaled.Renew(std::min(kPart, shape.Elements()));
  void* codes = call.codes;
  if (codes == nullptr) {
    memory.codes.Renew(shape.Elements() * bytes);
    codes = memory.codes.View().data;
  }
  WithElements(call.in.element, [&](auto elements) {
    using E = decltype(elements);
    if (bytes == 1) {
      QuantizeAs<E>(call, static_cast<uint8_t*>(codes), memory.scaled.View().data);
    } else {
      QuantizeAs<E>(call, static_cast<uint16_t*>(codes), memory.scaled.View().data);
    }
  });
  if (call.transposed != nullptr) Transpose(codes, shape, bytes, call.transposed, stream);
}

}  // namespace numsim::cuda
