// Highway 1.0.3 has no operation for the VNNI instruction, and adding a Highway target for it would
// double the compile time of every kernel. So the one loop that needs it is written in intrinsics.
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/gemm/internal/gemm_simd.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#include <cstring>

#define NUMSIM_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#if defined(__clang__)
#define NUMSIM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NUMSIM_UNROLL _Pragma("GCC unroll 16")
#endif

namespace numsim {

bool HasVnniTile() { return BackendName() == "avx3" && __builtin_cpu_supports("avx512vnni") != 0; }

// A group has one word for each of 12 rows, so four groups fill three vectors of 16 words.
NUMSIM_VNNI void SumVnniPanel(const uint8_t* a, size_t groups, int32_t* sums) {
  constexpr size_t kRows = kVnniTile.rows, kLanes = 16, kStep = 4;
  static_assert(kStep * kRows == 3 * kLanes);
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  size_t g = 0;
  for (; g + kStep <= groups; g += kStep, a += 4 * kStep * kRows) {
    NUMSIM_UNROLL for (size_t v = 0; v < 3; ++v) {
      sum[v] = _mm512_dpbusd_epi32(sum[v], ones, _mm512_loadu_si512(a + 4 * kLanes * v));
    }
  }
  int32_t partial[3 * kLanes];
  NUMSIM_UNROLL for (size_t v = 0; v < 3; ++v) _mm512_storeu_si512(partial + kLanes * v, sum[v]);
  for (size_t r = 0; r < kRows; ++r) {
    sums[r] = 0;
    for (size_t i = 0; i < kStep; ++i) sums[r] += partial[i * kRows + r];
  }
  for (; g < groups; ++g, a += 4 * kRows) {
    for (size_t i = 0; i < 4 * kRows; ++i) sums[i / 4] += static_cast<int8_t>(a[i]);
  }
}

NUMSIM_VNNI void MultiplyVnniTile(const uint8_t* a,
                                  const uint8_t* b,
                                  size_t groups,
                                  const int32_t* sums_a,
                                  bool fresh,
                                  int32_t* acc) {
  constexpr size_t kRows = kVnniTile.rows;
  constexpr size_t kCols = kVnniTile.cols;
  __m512i sum[kRows][2];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    // The panel of B holds b + 128.
    const __m512i offset = _mm512_set1_epi32(128 * sums_a[r]);
    const __m512i zero = _mm512_setzero_si512();
    sum[r][0] = fresh ? zero : _mm512_loadu_si512(acc + r * kCols);
    sum[r][1] = fresh ? zero : _mm512_loadu_si512(acc + r * kCols + kCols / 2);
    sum[r][0] = _mm512_sub_epi32(sum[r][0], offset);
    sum[r][1] = _mm512_sub_epi32(sum[r][1], offset);
  }
  for (size_t g = 0; g < groups; ++g) {
    const __m512i b0 = _mm512_loadu_si512(b);
    const __m512i b1 = _mm512_loadu_si512(b + 2 * kCols);
    NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
      int32_t word;
      std::memcpy(&word, a + 4 * r, 4);
      const __m512i factor = _mm512_set1_epi32(word);
      sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], b0, factor);
      sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], b1, factor);
    }
    a += 4 * kRows;
    b += 4 * kCols;
  }
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(acc + r * kCols, sum[r][0]);
    _mm512_storeu_si512(acc + r * kCols + kCols / 2, sum[r][1]);
  }
}

}  // namespace numsim

#else

namespace numsim {

bool HasVnniTile() { return false; }

void SumVnniPanel(const uint8_t*, size_t, int32_t*) {
  NUMSIM_CHECK(false, "no VNNI in this build");
}

void MultiplyVnniTile(const uint8_t*, const uint8_t*, size_t, const int32_t*, bool, int32_t*) {
  NUMSIM_CHECK(false, "no VNNI in this build");
}

}  // namespace numsim
#endif
