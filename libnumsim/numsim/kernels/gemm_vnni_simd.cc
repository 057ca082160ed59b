// Highway 1.0.3 has no operation for this instruction, and a whole Highway target for it would
// double the compile time of every kernel: the one loop that needs it is written with intrinsics.
#include "numsim/kernels/gemm_vnni_simd.h"

#include "numsim/base/error.h"
#include "numsim/kernels/simd_target.h"

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

bool HasVnniTile() {
  return SimdTargetName() == "avx3" && __builtin_cpu_supports("avx512vnni") != 0;
}

NUMSIM_VNNI void MultiplyVnniTile(const uint8_t* a, const uint8_t* b, size_t groups, int32_t* acc) {
  constexpr size_t kRows = kVnniTile.rows;
  constexpr size_t kCols = kVnniTile.cols;
  __m512i sum[kRows][2];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    sum[r][0] = _mm512_loadu_si512(acc + r * kCols);
    sum[r][1] = _mm512_loadu_si512(acc + r * kCols + kCols / 2);
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

void MultiplyVnniTile(const uint8_t*, const uint8_t*, size_t, int32_t*) {
  NUMSIM_CHECK(false, "no VNNI in this build");
}

}  // namespace numsim
#endif
