// Quantisation with one factor for the whole matrix, and the choice of the kernel for a call.
#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantize_device.h"
#include "numsim/quantize/internal/quantize_launch_cuda.cuh"

namespace numsim::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;  // vectors

// Writes the codes of n elements. Each block handles kThreads * kPerThread vectors. The first
// threads of the last block handle the elements after the last whole vector. If the factor is not
// usual (IsUsualFactor), all elements are handled one at a time.
template <class E, class Codec>
__global__ void __launch_bounds__(kThreads) QuantizeElements(const void* __restrict__ in,
                                                             size_t n,
                                                             const float* __restrict__ inv_scale,
                                                             uint8_t* __restrict__ codes,
                                                             const __grid_constant__ Codec codec) {
  constexpr size_t kBlock = kThreads * kPerThread;
  const size_t vectors = n / E::kPerVector;
  const size_t first = blockIdx.x * kBlock + threadIdx.x;
  uint4 loaded[kPerThread] = {};
#pragma unroll
  for (int u = 0; u < kPerThread; ++u) {
    const size_t v = first + u * kThreads;
    if (v < vectors) loaded[u] = LoadVector(in, v);
  }
  const float factor = __ldg(inv_scale);
  if (Codec::kSigned && !IsUsualFactor(factor)) {
    const size_t begin = blockIdx.x * kBlock * E::kPerVector;
    const size_t end = ::min(begin + kBlock * E::kPerVector, n);
    for (size_t i = begin + threadIdx.x; i < end; i += kThreads) {
      codes[i] = ExactCode(codec, E::At(in, i), factor);
    }
    return;
  }
  const float m[4] = {factor, factor, factor, factor};
#pragma unroll
  for (int u = 0; u < kPerThread; ++u) {
    const size_t v = first + u * kThreads;
    if (v < vectors) StoreCodes<E>(codec, loaded[u], m, codes, v);
  }
  const size_t last = vectors * E::kPerVector + threadIdx.x;
  if (blockIdx.x == gridDim.x - 1 && last < n) {
    codes[last] = ExactCode(codec, E::At(in, last), factor);
  }
}

}  // namespace

bool QuantizeFlat(const QuantizeCall& call, DeviceStream& stream) {
  if (call.transposed != nullptr || call.layout.granularity != Granularity::kTensor ||
      !IsAligned(call.in.data, 16) || !IsAligned(call.codes, 8)) {
    return false;
  }
  return WithCodec(call.plan, [&](auto codec) {
    WithElements(call.in.element, [&](auto elements) {
      using E = decltype(elements);
      const size_t n = call.in.Elements();
      const size_t blocks = CeilDiv(n, size_t{kThreads} * kPerThread * E::kPerVector);
      NUMSIM_CHECK(blocks < (size_t{1} << 31), "{} elements", n);
      QuantizeElements<E, decltype(codec)>
          <<<static_cast<uint32_t>(blocks), kThreads, 0, Raw(stream)>>>(
              call.in.data, n, call.inv_scales, static_cast<uint8_t*>(call.codes), codec);
      CheckLaunch("QuantizeElements", Text(call.in.Shape()));
    });
  });
}

void Quantize(const EncodePlan& plan,
              ConstFloatSpan in,
              const ScaleLayout& layout,
              MatrixSpan<const float> inv_scales,
              void* codes,
              void* transposed,
              const ArrayRandom& random) {
  if (in.Elements() == 0 || (codes == nullptr && transposed == nullptr)) return;
  const QuantizeCall call = {plan, in, layout, inv_scales.data, codes, transposed, random};
  DeviceStream& stream = in.place.Stream();
  if (QuantizeFlat(call, stream) || QuantizeTiles(call, stream)) return;
  QuantizeInParts(call, stream);
}

}  // namespace numsim::cuda
