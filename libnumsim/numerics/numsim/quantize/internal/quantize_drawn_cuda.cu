// Row-wise quantisation with stochastic rounding: each row is read once, and its random words are
// computed a block at a time.
#include <fmt/format.h>

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/cast/shared/cast_tiles_cuda.cuh"
#include "numsim/quantize/internal/quantize_cuda.cuh"
#include "numsim/quantize/internal/quantized_launch.h"
#include "numsim/random/streams.h"

namespace numsim::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kLeastBlocks =
    10;  // per multiprocessor: rows wait for memory while others compute
constexpr uint32_t kWarps = kThreads / 32;
constexpr size_t kMostRowBytes = size_t{96} << 10;  // of shared memory

// Writes the bits of four products with a usual factor (IsUsualFactor), 16 elements apart.
template <class E>
__device__ void ScaledFour(const void* values, uint32_t at, float factor, uint32_t* bits) {
  float p[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    p[i] = __fmul_rn(E::At(values, at + 16 * i), factor);
    bits[i] = Bits(p[i]);
  }
  const float sum = (p[0] + p[1]) + (p[2] + p[3]);
  if (sum == sum) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) bits[i] = ProductBits(E::At(values, at + 16 * i), factor);
}

// Computes the maximum, scale and codes of row blockIdx.x, which is kept in shared memory
// meanwhile. The row begins at a tile of the random stream and has an even number of tiles.
template <class E, int kBits>
__global__ void __launch_bounds__(kThreads, kLeastBlocks) QuantizeRowsDrawn(
    const void* __restrict__ in,
    uint32_t cols,
    ScaleFactory maker,
    uint64_t first_tile,
    uint8_t* __restrict__ codes,
    float* __restrict__ scales,
    const __grid_constant__ PhiloxStream stream,
    const __grid_constant__
        StochasticEncoder<EncodeShortcutKind::kStochasticNarrower, kBits, uint8_t> encoder) {
  constexpr uint32_t kElements = kTileElements<kBits>;
  constexpr int kRows = kElements / kRandomLanes;
  extern __shared__ uint4 row_values[];
  const uint32_t vectors = cols / E::kPerVector;
  const size_t row = blockIdx.x;
  uint32_t max = E::kNone;
  for (uint32_t v = threadIdx.x; v < vectors; v += kThreads) {
    const uint4 loaded = LoadVector(in, row * vectors + v);
    row_values[v] = loaded;
    max = MaxOfVector<E>(max, loaded);
  }
  const Scale scale = maker(MaximumOf(MaxOfRow(E::Joined(max))));
  if (threadIdx.x == 0) scales[row] = scale.scale;
  const uint32_t tiles = cols / kElements;
  const HalfWarp half_warp(sizeof(uint8_t));
  const uint32_t half = threadIdx.x / 16 % 2;
  for (uint32_t pair = threadIdx.x / 32; 2 * pair < tiles; pair += kWarps) {
    const uint32_t tile = 2 * pair + half;
    const uint64_t block_index = (first_tile + row * tiles + tile) * kRandomLanes + half_warp.lane;
    const PhiloxCounter block = RandomBlock(stream, block_index);
    uint32_t bits[kRows];
#pragma unroll
    for (int r = 0; r < kRows; r += 4) {
      const uint32_t at = tile * kElements + 16 * r + half_warp.lane;
      ScaledFour<E>(row_values, at, scale.inv_scale, bits + r);
    }
    ApplyRows<0, kBits>(
        encoder, bits, block, half_warp, true, codes + row * cols + tile * kElements);
  }
}

template <class E, int kBits>
void Launch(const EncodeShortcut& shortcut, const RowsCall& call) {
  const auto kernel = QuantizeRowsDrawn<E, kBits>;
  static const bool prepared = [&] {
    NUMSIM_CUDA(
        cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kMostRowBytes)),
        "{} bytes of shared memory",
        kMostRowBytes);
    return true;
  }();
  static_cast<void>(prepared);
  const ConstFloatSpan& in = call.in;
  const size_t row_bytes = in.cols * E::kBytes;
  kernel<<<static_cast<uint32_t>(in.rows), kThreads, row_bytes, Raw(in.place.Stream())>>>(
      in.data,
      static_cast<uint32_t>(in.cols),
      call.maker,
      call.random.first_index / kTileElements<kBits>,
      call.codes,
      call.scales,
      MakePhiloxStream(call.random.stream),
      {shortcut, {}});
  CheckLaunch("QuantizeRowsDrawn", Text(in.Shape()));
}

}  // namespace

bool QuantizeRowsDrawn(const RowsCall& call) {
  const EncodePlan& plan = call.plan;
  const ConstFloatSpan& in = call.in;
  const EncodeShortcut shortcut = MakeEncodeShortcut(plan);
  if (shortcut.kind != EncodeShortcutKind::kStochasticNarrower || plan.format.StorageBytes() != 1) {
    return false;
  }
  const int field = RandomFieldBits(plan.rounding.random_bits);
  const size_t tile = size_t{64} * (32 / static_cast<size_t>(field));
  if (in.Elements() == 0 || in.cols % (2 * tile) != 0 || call.random.first_index % tile != 0 ||
      in.Bytes() / in.rows > kMostRowBytes || in.rows >= (size_t{1} << 31) || !HasVectorRows(in) ||
      !IsAligned(call.codes, 4)) {
    return false;
  }
  WithElements(in.element, [&](auto elements) {
    using E = decltype(elements);
    const auto launch = [&](auto bits) { Launch<E, decltype(bits)::value>(shortcut, call); };
    if (field == 8) return launch(std::integral_constant<int, 8>());
    if (field == 16) return launch(std::integral_constant<int, 16>());
    launch(std::integral_constant<int, 32>());
  });
  return true;
}

}  // namespace numsim::cuda
