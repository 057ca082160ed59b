// Writes codes in the order of the input, transposed, or both, reading the input once.
#include <fmt/format.h>

#include "numsim/base/require.h"
#include "numsim/quantize/internal/quantize_launch_cuda.cuh"
#include "numsim/quantize/internal/quantize_tiles_cuda.cuh"
#include "numsim/quantize/shared/transpose_device.h"

namespace numsim::cuda {
namespace {

// A source of WriteTiles (quantize_tiles_cuda.cuh) that quantises. kColumns: each column has its
// own factor, the same in all rows. Otherwise the 8 elements of a row share one factor.
template <class E, class Codec, bool kColumns>
struct QuantizeSource {
  static constexpr int kBytes = 1;
  static constexpr int kRows = 4;
  static constexpr bool kIsAlwaysUsual = !Codec::kSigned;
  static constexpr int kVectors = 8 / E::kPerVector;
  static constexpr int kFactors = kColumns ? 8 : kRows;

  struct Raw {
    uint4 v[kVectors];
  };
  struct Factors {
    float m[kFactors];
  };

  const void* in;
  const float* inv_scales;
  TileIndex index;
  uint32_t cols;
  Codec codec;

  __device__ Raw Load(uint32_t row, uint32_t col) const {
    const size_t first = (size_t{row} * cols + col) / E::kPerVector;
    Raw raw;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) raw.v[i] = LoadVector(in, first + i);
    return raw;
  }

  __device__ Factors FactorsOf(uint32_t row, uint32_t rows, uint32_t col, uint32_t) const {
    Factors factors;
#pragma unroll
    for (int i = 0; i < kFactors; ++i) {
      factors.m[i] = 1;
      if (col >= cols) continue;
      if constexpr (kColumns) {
        factors.m[i] = __ldg(inv_scales + col + i);
      } else if (row + i < rows) {
        factors.m[i] = __ldg(inv_scales + index(row + i, col));
      }
    }
    return factors;
  }

  __device__ bool IsUsual(const Factors& factors) const {
    bool usual = true;
#pragma unroll
    for (const float m : factors.m) usual = usual && IsUsualFactor(m);
    return usual;
  }

  __device__ void Words(const Raw& raw,
                        const Factors& factors,
                        int row,
                        uint32_t (&words)[2]) const {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const float* each = factors.m + (kColumns ? 4 * q : 0);
      const float same = factors.m[kColumns ? 0 : row];
      const float m[4] = {kColumns ? each[0] : same,
                          kColumns ? each[1] : same,
                          kColumns ? each[2] : same,
                          kColumns ? each[3] : same};
      words[q] = QuadCodes<E>(codec, raw.v[q / E::kQuads], q % E::kQuads, m);
    }
  }

  __device__ uint8_t Exact(uint32_t row, uint32_t col) const {
    const size_t scale = kColumns ? col : index(row, col);
    return ExactCode(codec, E::At(in, size_t{row} * cols + col), inv_scales[scale]);
  }
};

// A source of WriteTiles that copies elements.
template <int kSize>
struct CopySource {
  static constexpr int kBytes = kSize;
  static constexpr bool kIsAlwaysUsual = true;
  struct Raw {
    uint32_t words[2 * kSize];
  };
  struct Factors {};

  const uint32_t* in;
  uint32_t cols;

  __device__ Raw Load(uint32_t row, uint32_t col) const {
    const uint32_t* from = in + (size_t{row} * cols + col) * kSize / 4;
    Raw raw;
    if constexpr (kSize == 1) {
      const uint2 v = __ldg(reinterpret_cast<const uint2*>(from));
      raw.words[0] = v.x, raw.words[1] = v.y;
    } else {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
      raw.words[0] = v.x, raw.words[1] = v.y, raw.words[2] = v.z, raw.words[3] = v.w;
    }
    return raw;
  }
  __device__ Factors FactorsOf(uint32_t, uint32_t, uint32_t, uint32_t) const { return {}; }
  __device__ void Words(const Raw& raw, Factors, int, uint32_t (&words)[2 * kSize]) const {
#pragma unroll
    for (int i = 0; i < 2 * kSize; ++i) words[i] = raw.words[i];
  }
};

// Transposes a matrix of any shape and alignment.
template <typename T>
__global__ void __launch_bounds__(256)
    TransposeAny(const T* __restrict__ in, MatrixShape shape, T* __restrict__ out) {
  __shared__ T tile[32][33];
  const size_t across = (shape.cols + 31) / 32;
  const size_t row = blockIdx.x / across * 32, col = blockIdx.x % across * 32;
  for (size_t y = threadIdx.y; y < 32; y += 8) {
    if (row + y < shape.rows && col + threadIdx.x < shape.cols) {
      tile[y][threadIdx.x] = in[(row + y) * shape.cols + col + threadIdx.x];
    }
  }
  __syncthreads();
  for (size_t y = threadIdx.y; y < 32; y += 8) {
    if (col + y < shape.cols && row + threadIdx.x < shape.rows) {
      out[(col + y) * shape.rows + row + threadIdx.x] = tile[threadIdx.x][y];
    }
  }
}

template <typename T>
void LaunchTransposeAny(const void* in, MatrixShape shape, void* out, DeviceStream& stream) {
  const size_t tiles = CeilDiv(shape.rows, 32) * CeilDiv(shape.cols, 32);
  NUMSIM_CHECK(tiles < (size_t{1} << 31), "{} x {}", shape.rows, shape.cols);
  TransposeAny<T><<<static_cast<uint32_t>(tiles), dim3(32, 8), 0, Raw(stream)>>>(
      static_cast<const T*>(in), shape, static_cast<T*>(out));
  CheckLaunch("TransposeAny", Text(shape));
}

template <int kBytes>
bool TransposeTiles(const void* in, MatrixShape shape, void* out, DeviceStream& stream) {
  if (!IsAligned(in, 8 * kBytes) || !FitsTiles(shape, kBytes, nullptr, out)) return false;
  const CopySource<kBytes> source = {static_cast<const uint32_t*>(in),
                                     static_cast<uint32_t>(shape.cols)};
  LaunchTiles(source, shape, nullptr, out, stream);
  return true;
}

}  // namespace

bool QuantizeTiles(const QuantizeCall& call, DeviceStream& stream) {
  const MatrixShape shape = call.in.Shape();
  if (!IsAligned(call.in.data, 16) || !FitsTiles(shape, 1, call.codes, call.transposed)) {
    return false;
  }
  const TileIndex index{ScaleGrid(shape, call.layout)};
  const bool shared = index.across == 1 || index.tile_cols % 8 == 0;
  const bool columns = index.tile_cols == 1 && index.tile_rows >= shape.rows;
  if (!shared && !columns) return false;
  return WithCodec(call.plan, [&](auto codec) {
    WithElements(call.in.element, [&](auto elements) {
      using E = decltype(elements);
      using Codec = decltype(codec);
      const uint32_t cols = static_cast<uint32_t>(shape.cols);
      if (shared) {
        const QuantizeSource<E, Codec, false> source = {
            call.in.data, call.inv_scales, index, cols, codec};
        LaunchTiles(source, shape, call.codes, call.transposed, stream);
      } else {
        const QuantizeSource<E, Codec, true> source = {
            call.in.data, call.inv_scales, index, cols, codec};
        LaunchTiles(source, shape, call.codes, call.transposed, stream);
      }
    });
  });
}

void Transpose(const void* in, MatrixShape shape, size_t bytes, void* out, DeviceStream& stream) {
  NUMSIM_REQUIRE(bytes == 1 || bytes == 2 || bytes == 4,
                 "Transpose: elements of {} bytes, expected 1, 2 or 4",
                 bytes);
  if (shape.Elements() == 0) return;
  if (bytes == 1) {
    if (TransposeTiles<1>(in, shape, out, stream)) return;
    LaunchTransposeAny<uint8_t>(in, shape, out, stream);
  } else if (bytes == 4) {
    LaunchTransposeAny<uint32_t>(in, shape, out, stream);
  } else {
    if (TransposeTiles<2>(in, shape, out, stream)) return;
    LaunchTransposeAny<uint16_t>(in, shape, out, stream);
  }
}

}  // namespace numsim::cuda
