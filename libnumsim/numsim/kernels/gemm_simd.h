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

// acc(r, c) += a(k, r) b(k, c), k ascending, each step rounded to nearest even.
void MultiplyTile(const float* a, const float* b, size_t depth, float* acc);
void MultiplyTile(const double* a, const double* b, size_t depth, double* acc);

// out[k * width + v] = word k of row v for k < n, words of 4 bytes: rows to a panel.
void InterleaveRows(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out);

// How a row of finished sums becomes a row of the result.
struct RowScale {
  double a;        // the scale of the row
  const float* b;  // of each column
  bool add;        // to what is there, in float32
  float nan;       // for every NaN
};

// out[c] = fl32(fl64(sums[c] * (scale.a * scale.b[c]))), or added to it.
void StoreScaledRow(const int32_t* sums, size_t n, const RowScale& scale, float* out);
void StoreScaledRow(const float* sums, size_t n, const RowScale& scale, float* out);
void StoreScaledRow(const double* sums, size_t n, const RowScale& scale, float* out);

}  // namespace numsim
