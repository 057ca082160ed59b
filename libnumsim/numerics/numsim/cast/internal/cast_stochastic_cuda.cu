// Stochastic rounding by shortcuts, and arrays of random bits. A thread generates a whole Philox
// block of random words and handles the elements that use it.
//
// Element j of a tile uses block lane j % 16 (random/streams.h), so the elements of a thread are 16
// apart: lane l of a half warp has elements l, l + 16, ... of one tile. Loads of 4 bytes by 16
// neighbouring threads are whole segments of 64 bytes. Codes are narrower, so the threads of a quad
// (a pair for 2-byte codes) exchange them, and each stores neighbouring codes as one word.
#include "numsim/cast/internal/cast_cuda.cuh"
#include "numsim/cast/shared/cast_tiles_cuda.cuh"

namespace numsim::cuda {
namespace {

// The array divided into tiles of the random stream. The first and the last tile may lie partly
// outside the array.
struct Tiling {
  PhiloxStream stream;
  uint64_t first_tile;
  unsigned skip;  // number of elements of the first tile that precede the array
  size_t n;
  bool words;  // the results of each tile begin at an address that is a multiple of 4 bytes
};

// Tiles per half warp, so that each thread has 16 elements.
template <int kBits>
constexpr int kTilesPerHalf = kBits / 8;
template <int kBits>
constexpr size_t kBlockTiles = size_t{kThreads / kRandomLanes} * kTilesPerHalf<kBits>;

// Gives the random bits themselves.
template <int kBits>
struct Drawer {
  using Out = uint32_t;
  static constexpr bool kReads = false;
  int down;  // 32 - the number of random bits per element

  __device__ __forceinline__ uint32_t Apply(uint32_t, uint32_t top) const { return top >> down; }
  template <int kRow>
  __device__ __forceinline__ StoredFour<uint32_t> Apply4(const uint32_t[4],
                                                         const PhiloxCounter& block) const {
    constexpr int kFields = 32 / kBits;
    return {Draw<(kRow + 0) % kFields>(block[(kRow + 0) / kFields]),
            Draw<(kRow + 1) % kFields>(block[(kRow + 1) / kFields]),
            Draw<(kRow + 2) % kFields>(block[(kRow + 2) / kFields]),
            Draw<(kRow + 3) % kFields>(block[(kRow + 3) / kFields])};
  }

 private:
  template <int kField>
  __device__ __forceinline__ uint32_t Draw(uint32_t word) const {
    return word << (32 - kBits * (kField + 1)) >> down;
  }
};

template <int kBits, class Op>
__global__ void __launch_bounds__(kThreads) TileKernel(const float* in,
                                                       typename Op::Out* out,
                                                       const __grid_constant__ Tiling tiling,
                                                       const __grid_constant__ Op op) {
  constexpr int kRows = 4 * (32 / kBits);
  constexpr int kTiles = kTilesPerHalf<kBits>;
  constexpr unsigned kElements = kTileElements<kBits>;
  const HalfWarp place(sizeof(typename Op::Out));
  const unsigned lane = place.lane;
  const unsigned half = threadIdx.x / kRandomLanes % 2;
  // The warp handles kTiles pairs of tiles. Each half warp takes one tile of every pair.
  const uint64_t warp_tile = blockIdx.x * kBlockTiles<kBits> + threadIdx.x / 32 * (2 * kTiles);
  const int64_t warp_begin = static_cast<int64_t>(warp_tile * kElements) - tiling.skip;
  const int64_t n = static_cast<int64_t>(tiling.n);
  if (warp_begin >= 0 && warp_begin + 2 * kTiles * static_cast<int64_t>(kElements) <= n) {
    const int64_t begin = warp_begin + half * kElements;
    uint32_t loaded[kTiles][kRows];
    if constexpr (Op::kReads) {
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          loaded[t][r] = __float_as_uint(in[begin + 2 * t * kElements + 16 * r + lane]);
        }
      }
    }
    const uint64_t first_block = (tiling.first_tile + warp_tile + half) * kRandomLanes + lane;
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const PhiloxCounter block = RandomBlock(tiling.stream, first_block + 2 * t * kRandomLanes);
      ApplyRows<0, kBits>(
          op, loaded[t], block, place, tiling.words, out + begin + 2 * t * kElements);
    }
    return;
  }
  // Tiles partly outside the array are handled one element at a time.
  const uint64_t first_index = tiling.first_tile * kElements;
#pragma unroll 1
  for (unsigned k = threadIdx.x % 32; k < 2 * kTiles * kElements; k += 32) {
    const int64_t i = warp_begin + k;
    if (i < 0 || i >= n) continue;
    const uint64_t index = first_index + warp_tile * kElements + k;
    uint32_t bits = 0;
    if constexpr (Op::kReads) bits = __float_as_uint(in[i]);
    out[i] =
        FromWord<typename Op::Out>(op.Apply(bits, TopAlignedDraw(tiling.stream, index, kBits)));
  }
}

template <int kBits, class Op>
void MapTiles(const char* what,
              const Op& op,
              const float* in,
              MatrixSpan<typename Op::Out> out,
              const ArrayRandom& random) {
  if (out.Empty()) return;
  constexpr unsigned kElements = kTileElements<kBits>;
  const unsigned skip = static_cast<unsigned>(random.first_index % kElements);
  const uintptr_t origin = reinterpret_cast<uintptr_t>(out.data) - skip * sizeof(typename Op::Out);
  const Tiling tiling = {MakePhiloxStream(random.stream),
                         random.first_index / kElements,
                         skip,
                         out.Elements(),
                         origin % 4 == 0};
  const size_t per_block = kBlockTiles<kBits> * kElements;
  const unsigned blocks =
      static_cast<unsigned>((skip + out.Elements() + per_block - 1) / per_block);
  TileKernel<kBits, Op><<<blocks, kThreads, 0, Raw(out.place.Stream())>>>(in, out.data, tiling, op);
  CheckLaunch(what, fmt::format("{} elements", out.Elements()));
}

template <EncodeShortcutKind kKind, typename Out>
void EncodeKind(const EncodePlan& plan,
                const EncodeShortcut& shortcut,
                MatrixSpan<const float> in,
                MatrixSpan<Out> out,
                const ArrayRandom& random) {
  const char* what = "encode, stochastic";
  const DecodeShortcut decode = MakeDecodeShortcut(plan.format);
  switch (RandomFieldBits(plan.rounding.random_bits)) {
    case 8:
      return MapTiles<8>(
          what, StochasticEncoder<kKind, 8, Out>{shortcut, decode}, in.data, out, random);
    case 16:
      return MapTiles<16>(
          what, StochasticEncoder<kKind, 16, Out>{shortcut, decode}, in.data, out, random);
    default:
      return MapTiles<32>(
          what, StochasticEncoder<kKind, 32, Out>{shortcut, decode}, in.data, out, random);
  }
}

}  // namespace

template <typename Out>
void EncodeStochastic(const EncodePlan& plan,
                      const EncodeShortcut& shortcut,
                      MatrixSpan<const float> in,
                      MatrixSpan<Out> out,
                      const ArrayRandom& random) {
  using Kind = EncodeShortcutKind;
  if (shortcut.kind == Kind::kStochasticNarrower) {
    return EncodeKind<Kind::kStochasticNarrower>(plan, shortcut, in, out, random);
  }
  EncodeKind<Kind::kStochasticSame>(plan, shortcut, in, out, random);
}

#define NUMSIM_INSTANTIATE(Out)                                \
  template void EncodeStochastic<Out>(const EncodePlan&,       \
                                      const EncodeShortcut&,   \
                                      MatrixSpan<const float>, \
                                      MatrixSpan<Out>,         \
                                      const ArrayRandom&);
NUMSIM_INSTANTIATE(uint8_t)
NUMSIM_INSTANTIATE(uint16_t)
NUMSIM_INSTANTIATE(float)
#undef NUMSIM_INSTANTIATE

void RandomBitsArray(const ArrayRandom& random, int bits, MatrixSpan<uint32_t> out) {
  const char* what = "random bits";
  const int down = 32 - bits;
  switch (RandomFieldBits(bits)) {
    case 8:
      return MapTiles<8>(what, Drawer<8>{down}, nullptr, out, random);
    case 16:
      return MapTiles<16>(what, Drawer<16>{down}, nullptr, out, random);
    default:
      return MapTiles<32>(what, Drawer<32>{down}, nullptr, out, random);
  }
}

}  // namespace numsim::cuda
