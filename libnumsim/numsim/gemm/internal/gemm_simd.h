// The inner loops of a GEMM: each call computes one tile of sums over a run of the inner dimension,
// on one thread. The caller sets the default floating-point environment.
//
// A tile is rows x cols sums, row-major. Its operands are panels: for each k of the run, the `rows`
// (or `cols`) values of that k, one after another.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

struct TileShape {
  size_t rows = 0;
  size_t cols = 0;
};

// The largest tiles of any target.
inline constexpr size_t kMaxTileRows = 12;
inline constexpr size_t kMaxTileCols = 32;
inline constexpr size_t kMaxTile = kMaxTileRows * kMaxTileCols;

// Return the tile shapes of the active target, {0, 0} if it has no float64 vectors. Not for the
// scalar backend.
TileShape Float32Tile();
TileShape Float64Tile();
// Returns true if MultiplyTile of floats rounds acc + a b once. If not, its result is correct only
// where float32 holds the products exactly.
bool TileIsFused();

// Computes acc(r, c) += a(k, r) b(k, c) for ascending k, each step rounded to nearest even. With
// `fresh`, sums start at +0 and the contents of acc are ignored.
void MultiplyTile(const float* a, const float* b, size_t depth, bool fresh, float* acc);
void MultiplyTile(const double* a, const double* b, size_t depth, bool fresh, double* acc);

// Packs rows of 4-byte words into a panel: out[k * width + v] = word k of row v, for k < n and
// v < width.
void InterleaveRows(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out);

// Writes out[v] = the bytes rows[0][v] ... rows[3][v], the first in the lowest place, XORed with
// `flips`, for v < n.
void InterleaveBytes(const uint8_t* const* rows, size_t n, uint32_t flips, uint32_t* out);

// The scales of a tile: a[r * a_step] for row r, b[c * b_step] for column c. A step is 0 or 1.
struct TileScales {
  const float* a;
  const float* b;
  size_t a_step, b_step;
  bool add;   // add to the result in float32 instead of replacing it
  float nan;  // written for every NaN
};

// The place of a tile in the result.
struct StoredTile {
  float* out;
  size_t stride;
  size_t rows, cols;
};

// Writes out(r, c) = fl32(fl64(sums(r, c) * (a(r) * b(c)))), or adds it to out(r, c). Rows of sums
// are sums_stride elements apart.
void StoreScaled(const int32_t* sums, size_t sums_stride, const TileScales&, const StoredTile&);
void StoreScaled(const float* sums, size_t sums_stride, const TileScales&, const StoredTile&);
void StoreScaled(const double* sums, size_t sums_stride, const TileScales&, const StoredTile&);

// --- The inner loop of int8 GEMM on x86 processors with AVX-512 VNNI. One thread.

// The shape of an int8 tile. Its panels hold groups of 4 consecutive k: 4 bytes per group and row
// (column). Bytes of B are stored with the sign bit flipped, that is as b + 128.
inline constexpr TileShape kVnniTile{12, 32};

// Returns true if the active backend is AVX-512 and this processor has VNNI.
bool HasVnniTile();

// Writes the sum of each row of a panel of A to sums[0 .. kVnniTile.rows). Requires HasVnniTile().
void SumVnniPanel(const uint8_t* a, size_t groups, int32_t* sums);

// Computes acc(r, c) += sum over 4 * groups values of k of a(k, r) b(k, c), modulo 2^32. sums_a[r]
// is the sum of a(., r). With `fresh`, sums start at 0 and the contents of acc are ignored.
// Requires HasVnniTile().
void MultiplyVnniTile(const uint8_t* a,
                      const uint8_t* b,
                      size_t groups,
                      const int32_t* sums_a,
                      bool fresh,
                      int32_t* acc);

// --- The inner loop of int8 GEMM on x86 processors with AMX. One thread.

// The shape of an int8 tile: four tile registers of 16 x 16 sums. Its panels hold steps of kAmxDepth
// consecutive k. A step of A is row after row, kAmxDepth bytes each; one of B is groups of 4
// consecutive k, 4 bytes per group and column. Panels are aligned to 64 bytes.
inline constexpr TileShape kAmxTile{32, 32};
inline constexpr size_t kAmxDepth = 64;

// Returns true if the active backend is AVX-512, and this processor and its operating system have
// AMX for int8. The first call asks the operating system for the permission.
bool HasAmxTile();

// Configures the tile registers of the calling thread, and releases them at the end. Requires
// HasAmxTile().
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

// Computes acc(r, c) += sum over kAmxDepth * steps values of k of a(k, r) b(k, c), modulo 2^32. With
// `fresh`, sums start at 0 and the contents of acc are ignored. Requires an AmxTiles of the calling
// thread.
void MultiplyAmxTile(const uint8_t* a, const uint8_t* b, size_t steps, bool fresh, int32_t* acc);

// --- The inner loops of aligned sums (kind kAligned of arith/accumulation_mode.h): one tile over a
// run of the inner dimension. One thread.

// A panel for aligned sums: the values, and for each value 2^e, where e is its exponent as
// arith/accumulation_mode.h defines it (0 in place of 2^e for zero). No infinities, no NaN.
template <typename T>
struct AlignedPanel {
  const T* values;
  const T* powers;
};

struct AlignedSums {
  int fraction_bits;  // F
  int chunk;
};

// Advances acc(r, c) by `depth` products in chunks; the last chunk may be shorter. The float32
// version requires AlignedFitsFloat32 and operand exponents in [-kAlignedWindow, kAlignedWindow].
// The float64 version requires products of at most 48 bits and takes any exponents of float32
// values.
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

// Within exponents of this magnitude, no scale, product or sum leaves float32's normal range: an
// accumulator is zero or at least 2^(-2 * 30 - 25).
inline constexpr int kAlignedWindow = 30;
// Returns true if float32 lanes can do aligned sums: float32 holds the product of two significands,
// and the aligned sum of a chunk fits int32. significand_bits include the hidden bit.
bool AlignedFitsFloat32(const AlignedSums& sums, int significand_bits_a, int significand_bits_b);

}  // namespace numsim
