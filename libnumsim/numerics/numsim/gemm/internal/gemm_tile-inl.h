// Parts that the tile kernels of gemm*_simd.cc share. Re-included per target.
#if defined(NUMSIM_GEMM_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_GEMM_GEMM_TILE_INL_H_
#undef NUMSIM_GEMM_GEMM_TILE_INL_H_
#else
#define NUMSIM_GEMM_GEMM_TILE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

// A loop with a constant count over an array of vectors must be unrolled to keep the array in
// registers.
#undef NUMSIM_UNROLL
#if HWY_COMPILER_CLANG
#define NUMSIM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define NUMSIM_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sums of a tile fill 24 of 32 vector registers, or 12 of 16. A row of a tile is two vectors.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_ARCH_ARM_A64
constexpr size_t kRows = 12;
#else
constexpr size_t kRows = 6;
#endif
constexpr size_t kVectors = 2;

// On targets without a fused multiply-add Highway multiplies and then adds.
#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR || \
    HWY_TARGET == HWY_EMU128
constexpr bool kFused = false;
#else
constexpr bool kFused = true;
#endif

#if HWY_HAVE_FLOAT64
// Rounds to the nearest float32.
template <class DF, class V>
HWY_INLINE hn::Vec<DF> ToFloat32(DF df, V x) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // On these targets Highway's DemoteTo makes infinities finite.
  constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(double);
  HWY_ALIGN double wide[kLanes];
  HWY_ALIGN float narrow[kLanes];
  const hn::Rebind<double, DF> d;
  hn::Store(x, d, wide);
  for (size_t i = 0; i < hn::Lanes(d); ++i) narrow[i] = static_cast<float>(wide[i]);
  return hn::Load(df, narrow);
#else
  return hn::DemoteTo(df, x);
#endif
}
#endif

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
