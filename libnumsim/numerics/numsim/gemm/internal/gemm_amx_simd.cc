// Highway 1.0.3 has no tiles. So the one loop that needs them is written in intrinsics.
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/gemm/internal/gemm_simd.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#define NUMSIM_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace numsim {
namespace {

constexpr size_t kTileRows = 16;  // of a tile register
constexpr size_t kRowBytes = 64;
static_assert(kAmxTile.rows == 2 * kTileRows && kAmxTile.cols == 2 * kTileRows);
static_assert(kAmxDepth == kRowBytes);

// The tile registers have rows of 64 bytes. Registers 6 and 7, of B, have 16 of them.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

constexpr unsigned kInt8Products = 1u << 25, kBf16Products = 1u << 22;  // of cpuid

// The processor has the tiles and these products, and the kernel lets this process use them.
// Linux asks for a request per process, because tiles make the state of a thread 8 KiB larger.
bool MayUseTiles(unsigned products) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kTiles) == 0 || (d & products) == 0) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// The compiler does not see that loading the configuration reads all of it.
NUMSIM_AMX void ConfigureTiles(const TileConfiguration& configuration) {
  asm volatile("" : : "m"(configuration));
  _tile_loadconfig(&configuration);
}
NUMSIM_AMX void ReleaseTiles() { _tile_release(); }

// Steps of B between the one that is multiplied and the one that is fetched into the first-level
// cache. Without it the loop takes as long on one thread, but a fifth longer on two cores of a Xeon.
constexpr size_t kAhead = 4;

// The address may lie after the last panel: fetching has no other effect.
NUMSIM_AMX inline void FetchStep(const uint8_t* b) {
  constexpr size_t kCacheLine = 64;
#pragma GCC unroll 32
  for (size_t i = 0; i < kAmxDepth * kAmxTile.cols; i += kCacheLine) {
    _mm_prefetch(b + i, _MM_HINT_T0);
  }
}

}  // namespace

bool HasAmxTile() {
  static const bool may_use_tiles = MayUseTiles(kInt8Products);
  return may_use_tiles && BackendName() == "avx3";
}

bool HasAmxPowers() {
  static const bool may_use_tiles = MayUseTiles(kBf16Products);
  return may_use_tiles && BackendName() == "avx3";
}

AmxTiles::AmxTiles(size_t rows) {
  TileConfiguration configuration;
  std::fill_n(configuration.rows, 6, static_cast<uint8_t>(rows));
  ConfigureTiles(configuration);
}
AmxTiles::~AmxTiles() { ReleaseTiles(); }

// Tile registers 0 to 3 hold the sums, 4 and 5 the rows of A, 6 and 7 the columns of B.
NUMSIM_AMX void MultiplyAmxTile(
    const uint8_t* a, const uint8_t* b, size_t steps, bool fresh, int32_t* acc) {
  constexpr size_t kHalfRows = kTileRows * kAmxTile.cols;  // int32 sums
  constexpr size_t kHalfCols = kTileRows;
  constexpr size_t kStride = kAmxTile.cols * sizeof(int32_t);  // of sums, and of groups of B
  if (fresh) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, acc, kStride);
    _tile_loadd(1, acc + kHalfCols, kStride);
    _tile_loadd(2, acc + kHalfRows, kStride);
    _tile_loadd(3, acc + kHalfRows + kHalfCols, kStride);
  }
  for (size_t s = 0; s < steps; ++s) {
    FetchStep(b + kAhead * kAmxDepth * kAmxTile.cols);
    _tile_loadd(4, a, kRowBytes);
    _tile_loadd(6, b, kStride);
    _tile_loadd(7, b + kRowBytes, kStride);
    _tile_loadd(5, a + kTileRows * kRowBytes, kRowBytes);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
    a += kAmxTile.rows * kAmxDepth;
    b += kAmxTile.cols * kAmxDepth;
  }
  _tile_stored(0, acc, kStride);
  _tile_stored(1, acc + kHalfCols, kStride);
  _tile_stored(2, acc + kHalfRows, kStride);
  _tile_stored(3, acc + kHalfRows + kHalfCols, kStride);
}

NUMSIM_AMX void AddAmxPowers(const uint32_t* a, const uint32_t* b, int32_t* sums) {
  constexpr size_t kHalfCols = kTileRows;
  constexpr size_t kStride = kAmxPowersTile.cols * sizeof(uint32_t);  // of sums and of pairs of B
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(4, a, kRowBytes);
  _tile_loadd(6, b, kStride);
  _tile_loadd(7, b + kHalfCols, kStride);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_stored(0, sums, kStride);
  _tile_stored(1, sums + kHalfCols, kStride);
}

}  // namespace numsim

#else

namespace numsim {

bool HasAmxTile() { return false; }
bool HasAmxPowers() { return false; }

AmxTiles::AmxTiles(size_t) { NUMSIM_CHECK(false, "no AMX in this build"); }
AmxTiles::~AmxTiles() {}

void MultiplyAmxTile(const uint8_t*, const uint8_t*, size_t, bool, int32_t*) {
  NUMSIM_CHECK(false, "no AMX in this build");
}
void AddAmxPowers(const uint32_t*, const uint32_t*, int32_t*) {
  NUMSIM_CHECK(false, "no AMX in this build");
}

}  // namespace numsim
#endif
