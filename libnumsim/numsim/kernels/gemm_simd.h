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

}  // namespace numsim
