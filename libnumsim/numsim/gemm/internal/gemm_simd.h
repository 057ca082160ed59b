// The inner loops of products: one tile of sums over a run of the inner dimension. One thread; the
// caller holds the floating-point environment at its default.
//
// A tile is rows x cols sums, row-major. Its operands are panels: for each k of the run the `rows`
// (or `cols`) values of that k, one after another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

struct TileShape {
  size_t rows = 0;
  size_t cols = 0;
};

// Largest tiles of any target.
inline constexpr size_t kMaxTileRows = 12;
inline constexpr size_t kMaxTileCols = 32;
inline constexpr size_t kMaxTile = kMaxTileRows * kMaxTileCols;

// Of the active target. Not for the scalar backend.
TileShape Float32Tile();
TileShape Float64Tile();
// Whether MultiplyTile of floats rounds acc + a b once. Without, its result is right only where
// products are exact in float32.
bool TileIsFused();

// acc(r, c) += a(k, r) b(k, c), k ascending, each step rounded to nearest even. `fresh`: from +0
// on, whatever acc holds.
void MultiplyTile(const float* a, const float* b, size_t depth, bool fresh, float* acc);
void MultiplyTile(const double* a, const double* b, size_t depth, bool fresh, double* acc);

// out[k * width + v] = word k of row v for k < n, words of 4 bytes: rows to a panel.
void InterleaveRows(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out);

// out[v] = the bytes rows[0][v] ... rows[3][v], the first the lowest, XORed with `flips`, for
// v < n.
void InterleaveBytes(const uint8_t* const* rows, size_t n, uint32_t flips, uint32_t* out);

// The scales of a tile: of row r a[r * a_step], of column c b[c * b_step]; a step is 0 or 1.
struct TileScales {
  const float* a;
  const float* b;
  size_t a_step, b_step;
  bool add;   // to what is there, in float32
  float nan;  // for every NaN
};

// Where a tile goes in the result.
struct StoredTile {
  float* out;
  size_t stride;
  size_t rows, cols;
};

// out(r, c) = fl32(fl64(sums(r, c) * (a(r) * b(c)))), or added to it. Rows of sums lie sums_stride
// apart.
void StoreScaled(const int32_t* sums, size_t sums_stride, const TileScales&, const StoredTile&);
void StoreScaled(const float* sums, size_t sums_stride, const TileScales&, const StoredTile&);
void StoreScaled(const double* sums, size_t sums_stride, const TileScales&, const StoredTile&);

// The inner loop of int8 products on x86 processors with AVX-512 VNNI. One thread.

// A tile of kVnniTile; panels hold groups of 4 consecutive k: for each group and each row (column)
// 4 bytes. The b side is stored with its sign bit flipped, as b + 128.
inline constexpr TileShape kVnniTile{12, 32};

// Whether the active backend is AVX-512 and this processor has VNNI.
bool HasVnniTile();

// The sums of the rows of an a panel. Requires HasVnniTile().
void SumVnniPanel(const uint8_t* a, size_t groups, int32_t* sums);

// acc(r, c) += sum over 4 * groups of a(k, r) b(k, c), modulo 2^32, where sums_a[r] is the sum of
// a(., r). `fresh`: from 0 on, whatever acc holds. Requires HasVnniTile().
void MultiplyVnniTile(const uint8_t* a,
                      const uint8_t* b,
                      size_t groups,
                      const int32_t* sums_a,
                      bool fresh,
                      int32_t* acc);

// The inner loops of the aligned sums of arith/accumulation_mode.h (kAligned): one tile over a run of the
// inner dimension, as in gemm_simd.h. One thread.

// A panel for the aligned sums of arith/accumulation_mode.h: values, and of each value 2^e, e its
// exponent as that header defines it (0 for zero). No infinities, no NaN.
template <typename T>
struct AlignedPanel {
  const T* values;
  const T* powers;
};

struct AlignedSums {
  int fraction_bits;  // F
  int chunk;
};

// acc(r, c) = the accumulator after `depth` products in chunks; the last chunk may be shorter.
// In float32: requires that AlignedFitsFloat32(sums) and exponents of operands in
// [-kAlignedWindow, kAlignedWindow]. In float64: products of at most 48 bits, any exponents of
// float32 values.
void AlignedMultiplyTile(const AlignedSums& sums,
                         const AlignedPanel<float>& a,
                         const AlignedPanel<float>& b,
                         size_t depth,
                         float* acc);
void AlignedMultiplyTile(const AlignedSums& sums,
                         const AlignedPanel<double>& a,
                         const AlignedPanel<double>& b,
                         size_t depth,
                         float* acc);

// Exponents so small in magnitude that no scale, product or sum leaves float32's normal range: an
// accumulator is zero or at least 2^(-2 * 30 - 25).
inline constexpr int kAlignedWindow = 30;
// Whether a chunk of products of two significands below 2 fits int32 when it is aligned:
// significand_bits: of either operand, the hidden bit included.
bool AlignedFitsFloat32(const AlignedSums& sums, int significand_bits_a, int significand_bits_b);

}  // namespace numsim
