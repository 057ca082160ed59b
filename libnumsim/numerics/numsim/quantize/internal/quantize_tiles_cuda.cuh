// Writing of matrices in the order of the input, transposed, or both, with one read: tiles of 64
// columns are transposed in shared memory.
//
// A block of 256 threads handles 64 columns and 32 * kRows rows, where kRows = 4 / (bytes per
// element written). A thread reads 8 neighbouring columns of kRows rows, writes them in order, and
// transposes them in registers into 8 words, one per column. Word w of column c is stored in
//   shared[32 c + (w xor 4 (c / 8 mod 8))],
// so that the 32 lanes of a store (8 groups of columns, 4 words) use 32 different banks, and 16
// neighbouring bytes of a column stay together. Then 8 lanes write 128 bytes of a column, which are
// part of a row of the transpose.
#pragma once

#include "numsim/backend/shared/device_call_cuda.cuh"
#include "numsim/quantize/internal/quantize_cuda.cuh"

namespace numsim::cuda {

inline constexpr int kTileThreads = 256;
inline constexpr int kTileCols = 64;

// Returns the number of rows of a tile whose elements have that many bytes.
constexpr uint32_t TileRows(int bytes) { return 32 * 4 / bytes; }

// Transposes four rows of 8 bytes each: words of rows become words of columns.
inline __device__ void Turn(const uint32_t (&rows)[4][2], uint32_t* columns) {
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const uint32_t low01 = __byte_perm(rows[0][q], rows[1][q], 0x5140);
    const uint32_t high01 = __byte_perm(rows[0][q], rows[1][q], 0x7362);
    const uint32_t low23 = __byte_perm(rows[2][q], rows[3][q], 0x5140);
    const uint32_t high23 = __byte_perm(rows[2][q], rows[3][q], 0x7362);
    columns[4 * q] = __byte_perm(low01, low23, 0x5410);
    columns[4 * q + 1] = __byte_perm(low01, low23, 0x7632);
    columns[4 * q + 2] = __byte_perm(high01, high23, 0x5410);
    columns[4 * q + 3] = __byte_perm(high01, high23, 0x7632);
  }
}
// Transposes two rows of 8 16-bit elements each.
inline __device__ void Turn(const uint32_t (&rows)[2][4], uint32_t* columns) {
#pragma unroll
  for (int q = 0; q < 4; ++q) {
    columns[2 * q] = __byte_perm(rows[0][q], rows[1][q], 0x5410);
    columns[2 * q + 1] = __byte_perm(rows[0][q], rows[1][q], 0x7632);
  }
}

inline __device__ void StoreWords(void* to, const uint32_t (&words)[2]) {
  *static_cast<uint2*>(to) = make_uint2(words[0], words[1]);
}
inline __device__ void StoreWords(void* to, const uint32_t (&words)[4]) {
  *static_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

// The results of WriteTiles.
struct TileOutput {
  uint32_t rows, cols;
  uint32_t tiles_across;
  uint8_t* in_order;    // in the order of the input; may be null
  uint8_t* transposed;  // the transpose; may be null
};

// Writes the elements that a source gives, in order, transposed, or both. `Source` has
//   kBytes                           the bytes of an element written, 1 or 2
//   Raw Load(row, col)               loads the input of 8 neighbouring elements of a row
//   Factors FactorsOf(row, rows, col, cols)
//                                    gives the factors of the 8 columns and kRows rows from there;
//                                    the columns are all inside the matrix or all outside
//   IsUsual(factors)                 true if Words is exact for these factors
//   Words(raw, factors, i, words)    gives the 8 elements of row i of the kRows rows
//   Exact(row, col)                  gives one element of one byte, for any factors
//   kIsAlwaysUsual                   true if IsUsual is always true
// Requires cols % 8 == 0 and `in_order` aligned to 8 elements. If `transposed` is not null, its
// rows must be multiples of 16 bytes and it must be aligned to 16 bytes.
template <class Source>
__global__ void __launch_bounds__(kTileThreads) WriteTiles(Source source, TileOutput out) {
  constexpr int kBytes = Source::kBytes;
  constexpr int kRows = 4 / kBytes;
  constexpr uint32_t kPerChunk = 16 / kBytes;
  __shared__ uint4 tile[kTileCols * 8];
  const uint32_t first_col = blockIdx.x % out.tiles_across * kTileCols;
  const uint32_t first_row = blockIdx.x / out.tiles_across * TileRows(kBytes);
  const uint32_t group = threadIdx.x % 8, word = threadIdx.x / 8;
  const uint32_t col = first_col + 8 * group, row = first_row + kRows * word;

  typename Source::Raw raw[kRows] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (row + i < out.rows && col < out.cols) raw[i] = source.Load(row + i, col);
  }
  const auto factors = source.FactorsOf(row, out.rows, col, out.cols);
  if constexpr (!Source::kIsAlwaysUsual) {
    if (__syncthreads_or(!source.IsUsual(factors))) {
      for (uint32_t r = row; r < row + kRows && r < out.rows; ++r) {
        for (uint32_t c = col; c < col + 8 && c < out.cols; ++c) {
          const uint8_t code = source.Exact(r, c);
          if (out.in_order) out.in_order[size_t{r} * out.cols + c] = code;
          if (out.transposed) out.transposed[size_t{c} * out.rows + r] = code;
        }
      }
      return;
    }
  }
  uint32_t words[kRows][2 * kBytes];
#pragma unroll
  for (int i = 0; i < kRows; ++i) source.Words(raw[i], factors, i, words[i]);
  if (out.in_order != nullptr) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row + i < out.rows && col < out.cols) {
        StoreWords(out.in_order + (size_t{row + i} * out.cols + col) * kBytes, words[i]);
      }
    }
  }
  if (out.transposed == nullptr) return;

  uint32_t columns[8];
  Turn(words, columns);
  uint32_t* shared = reinterpret_cast<uint32_t*>(tile);
  const uint32_t at = 8 * group * 32 + (word ^ (4 * group));
#pragma unroll
  for (int j = 0; j < 8; ++j) shared[at + 32 * j] = columns[j];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const uint32_t c = (threadIdx.x + k * kTileThreads) / 8, chunk = threadIdx.x % 8;
    const uint32_t r = first_row + chunk * kPerChunk;
    if (first_col + c < out.cols && r < out.rows) {
      const size_t to = (size_t{first_col + c} * out.rows + r) * kBytes;
      *reinterpret_cast<uint4*>(out.transposed + to) = tile[8 * c + (chunk ^ (c / 8))];
    }
  }
}

// True if WriteTiles can write elements of that many bytes to these arrays.
inline bool FitsTiles(MatrixShape shape, int bytes, const void* in_order, const void* transposed) {
  return FitsUint32(shape) && shape.cols % 8 == 0 && IsAligned(in_order, 8 * bytes) &&
         (transposed == nullptr || (IsAligned(transposed, 16) && shape.rows * bytes % 16 == 0));
}

template <class Source>
void LaunchTiles(const Source& source,
                 MatrixShape shape,
                 void* in_order,
                 void* transposed,
                 DeviceStream& stream) {
  const size_t across = CeilDiv(shape.cols, kTileCols);
  const size_t tiles = across * CeilDiv(shape.rows, TileRows(Source::kBytes));
  NUMSIM_CHECK(tiles < (size_t{1} << 31), "{} x {}", shape.rows, shape.cols);
  const TileOutput out = {static_cast<uint32_t>(shape.rows),
                          static_cast<uint32_t>(shape.cols),
                          static_cast<uint32_t>(across),
                          static_cast<uint8_t*>(in_order),
                          static_cast<uint8_t*>(transposed)};
  WriteTiles<Source><<<static_cast<uint32_t>(tiles), kTileThreads, 0, Raw(stream)>>>(source, out);
  CheckLaunch("WriteTiles", Text(shape));
}

}  // namespace numsim::cuda
