// The inner loops of a GEMM: each call computes one tile of sums over a run of the inner dimension,
// on one thread. The caller sets the default floating-point environment.
//
// A tile is rows x cols sums, row-major. Its operands are panels: for each k of the run, the `rows`
// (or `cols`) values of that k, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "numsim/arith/accumulation_mode.h"

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

// Adds n sums to their totals, and sets them to 0.
void PromoteSums(float* sums, float* totals, size_t n);
void PromoteSums(float* sums, double* totals, size_t n);

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
  bool finite;  // none of the scales is an infinity or a NaN
  bool add;     // add to the result in float32 instead of replacing it
  float nan;    // written for every NaN
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

// The smallest and the largest finite magnitude other than 0 of some float32 numbers, as bits. They
// are as below if there is none.
struct Magnitudes {
  int32_t smallest = INT32_MAX;
  int32_t largest = 0;
  bool finite = true;  // none is an infinity or a NaN
};
// Adds n numbers to those that were found before.
void AddMagnitudes(const float* x, size_t n, Magnitudes& found);

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

// Configures the tile registers of the calling thread, and releases them at the end. Registers of A
// and of sums have `rows` rows, at most 16. Requires HasAmxTile() or HasAmxPowers().
class AmxTiles {
 public:
  explicit AmxTiles(size_t rows = 16);
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

// Computes acc(r, c) += sum over kAmxDepth * steps values of k of a(k, r) b(k, c), modulo 2^32. With
// `fresh`, sums start at 0 and the contents of acc are ignored. Requires an AmxTiles of the calling
// thread.
void MultiplyAmxTile(const uint8_t* a, const uint8_t* b, size_t steps, bool fresh, int32_t* acc);

// --- Sums of products of bf16 numbers by AMX. One thread.

// A tile of sums, and the products of each.
inline constexpr TileShape kAmxPowersTile{12, 32};
inline constexpr size_t kAmxPowers = 32;

// Does what HasAmxTile does, for AMX for bf16.
bool HasAmxPowers();

// Writes the bits of sum(r, c) = sum over k of a(r, k) b(k, c), in float32: a sum of non-negative
// products, rounded in an order that is not stated. A word holds the bf16 codes of two k. Words of A
// are row after row, those of B are kAmxPowersTile.cols for each pair of k. Requires AmxTiles of
// kAmxPowersTile.rows rows of the calling thread.
void AddAmxPowers(const uint32_t* a, const uint32_t* b, int32_t* sums);

// --- The inner loops of aligned sums (kind kAligned of arith/accumulation_mode.h): one tile over a
// run of the inner dimension. One thread.

// How the products of a chunk are truncated and added.
enum class AlignedLanes : uint8_t {
  kFloat,        // by fused multiply-adds of float32
  kFloatTiles,   // the same, and the largest exponents come from AMX
  kInteger,      // as int32
  kDoubleBytes,  // by fused multiply-adds of float64
  kDouble,       // the same, with fields of two bytes, for any exponents
};

struct AlignedSums {
  int fraction_bits;  // F
  int chunk;
  AlignedLanes lanes;
  int unit;          // products are multiples of 2^unit
  int low_exponent;  // the smallest exponent of a product
};

// All lanes but kDouble take operands with exponents of this magnitude: no scale, product or sum
// leaves float32's normal range, and an accumulator is zero or at least 2^kLeastInWindow.
inline constexpr int kAlignedWindow = 30;
inline constexpr int kLeastInWindow = -2 * kAlignedWindow - 25;

// An operand, as far as the choice of lanes depends on it.
struct AlignedFactor {
  int bits;        // of a significand, with the hidden bit
  int exponents;   // the largest exponent less the smallest
  int places;      // the largest exponent less that of the unit
  bool in_window;  // all exponents are in [-kAlignedWindow, kAlignedWindow]
};

// Returns the fastest lanes that do a mode of kind kAligned, or nothing if no lanes do.
std::optional<AlignedLanes> LanesForAligned(const AccumulationMode& mode,
                                            const AlignedFactor& a,
                                            const AlignedFactor& b);

// Returns kDoubleBytes or kDouble, or nothing if neither does the mode.
std::optional<AlignedLanes> DoubleLanesForAligned(const AccumulationMode& mode,
                                                  const AlignedFactor& a,
                                                  const AlignedFactor& b);

// Returns true for kDoubleBytes and kDouble.
constexpr bool AreOfFloat64(AlignedLanes lanes) {
  return lanes == AlignedLanes::kDoubleBytes || lanes == AlignedLanes::kDouble;
}

// Returns the bytes of a panel of `width` vectors and `depth` positions.
size_t AlignedPanelSize(const AlignedSums& sums, size_t width, size_t depth);

// The values of an operand: multiples of 2^unit with exponents of at least low_exponent. Subnormals
// have least_exponent, the format's MinExponent().
struct AlignedGrid {
  int least_exponent;
  int low_exponent;
  int unit;
};

// Writes a panel of A or B from `depth` times `width` values, those of one k after another, where
// `width` is the number of rows or columns of a tile. Infinities and NaN count as 0. Panels are
// aligned to 64 bytes.
void FillAlignedPanel(const AlignedSums& sums,
                      bool is_a,
                      const AlignedGrid& grid,
                      const float* values,
                      size_t depth,
                      uint8_t* panel);

// Products [begin, end) of two panels; `begin` starts a chunk.
struct AlignedRun {
  const uint8_t* a;
  const uint8_t* b;
  size_t panel_depth;
  size_t begin, end;
  // For lanes of float64, or null: powers of two by which acc(r, c) is divided before each chunk and
  // multiplied after it. For each chunk of a panel the inverses of its vectors, then the powers.
  const float* scales_a = nullptr;
  const float* scales_b = nullptr;
};

// Advances acc(r, c) by the products of the run in chunks; the last chunk may be shorter. Tiles have
// the shape of Float64Tile() for lanes of float64, otherwise that of Float32Tile().
void AlignedMultiplyTile(const AlignedSums& sums, const AlignedRun& run, float* acc);

}  // namespace numsim
