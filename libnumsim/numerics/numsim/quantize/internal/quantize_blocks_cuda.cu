// Quantisation of short blocks that are read once: each thread takes a block of 16 or 32 elements.
#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantized_launch.h"

namespace numsim {
namespace cuda {
namespace {

constexpr uint32_t kThreads = 256;

// Computes the maximum, scale and codes of block number blockIdx.x * kThreads + threadIdx.x.
// `tensor_absmax` is null for a rule without TakesTensorMaximum.
template <class E, class Codec, int kBlock>
__global__ void __launch_bounds__(kThreads) QuantizeBlocks(const void* __restrict__ in,
                                                           size_t blocks,
                                                           ScaleFactory maker,
                                                           const float* tensor_absmax,
                                                           uint8_t* __restrict__ codes,
                                                           float* __restrict__ scales,
                                                           const __grid_constant__ Codec codec) {
  constexpr int kVectors = kBlock / E::kPerVector;
  const size_t block = blockIdx.x * size_t{kThreads} + threadIdx.x;
  if (block >= blocks) return;
  uint4 loaded[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) loaded[i] = LoadVector(in, block * kVectors + i);
  uint32_t max = E::kNone;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) max = MaxOfVector<E>(max, loaded[i]);
  if (tensor_absmax != nullptr) maker = maker.ForTensor(*tensor_absmax);
  const Scale scale = maker(MaximumOf(E::Joined(max)));
  scales[block] = scale.scale;
  if (!IsUsualFactor(scale.inv_scale)) {  // a block of zeros under a rule with two levels
    for (int i = 0; i < kBlock; ++i) {
      const size_t at = block * kBlock + i;
      codes[at] = ExactCode(codec, E::At(in, at), scale.inv_scale);
    }
    return;
  }
  const float m[4] = {scale.inv_scale, scale.inv_scale, scale.inv_scale, scale.inv_scale};
  uint32_t words[kBlock / 4];
#pragma unroll
  for (int q = 0; q < kBlock / 4; ++q) {
    words[q] = QuadCodes<E>(codec, loaded[q / E::kQuads], q % E::kQuads, m);
  }
  uint4* const to = reinterpret_cast<uint4*>(codes) + block * (kBlock / 16);
#pragma unroll
  for (int i = 0; i < kBlock / 16; ++i) {
    to[i] = make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
  }
}

template <class E, int kBlock, class Codec>
void LaunchBlocks(const Codec& codec, const BlocksCall& call) {
  const size_t blocks = call.in.Elements() / kBlock;
  QuantizeBlocks<E, Codec, kBlock><<<static_cast<uint32_t>(CeilDiv(blocks, size_t{kThreads})),
                                     kThreads,
                                     0,
                                     Raw(call.in.place.Stream())>>>(
      call.in.data, blocks, call.maker, call.tensor_absmax, call.codes, call.scales, codec);
  CheckLaunch("QuantizeBlocks", Text(call.in.Shape()));
}

}  // namespace
}  // namespace cuda

bool CanQuantizeBlocksOnDevice(const EncodePlan& plan,
                               ConstFloatSpan in,
                               const ScaleLayout& layout,
                               const void* codes) {
  const bool served = layout.granularity == Granularity::kBlock &&
                      (layout.block == 16 || layout.block == 32) && in.cols % layout.block == 0;
  return served && in.Elements() != 0 && in.Elements() / layout.block < (size_t{1} << 31) &&
         cuda::IsAligned(in.data, 16) && cuda::IsAligned(codes, 16) &&
         cuda::WithCodec(plan, [](auto) {});
}

void QuantizeBlocksOnDevice(const BlocksCall& call) {
  cuda::WithCodec(call.plan, [&](auto codec) {
    cuda::WithElements(call.in.element, [&](auto elements) {
      using E = decltype(elements);
      if (call.block == 16) return cuda::LaunchBlocks<E, 16>(codec, call);
      cuda::LaunchBlocks<E, 32>(codec, call);
    });
  });
}

}  // namespace numsim
