// Fused multiply-adds of vectors of rows-inl.h, with the same bits on every target. Re-included per
// target.
#if defined(NUMSIM_OPS_FUSED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_OPS_FUSED_ROWS_INL_H_
#undef NUMSIM_OPS_FUSED_ROWS_INL_H_
#else
#define NUMSIM_OPS_FUSED_ROWS_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns a * b + c, rounded once.
HWY_INLINE RowVector FusedMulAdd(RowVector a, RowVector b, RowVector c) {
#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR || \
    HWY_TARGET == HWY_EMU128
  const RowTag d;
  HWY_ALIGN float x[kVectorLanes], y[kVectorLanes], z[kVectorLanes];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(c, d, z);
  for (size_t i = 0; i < kVectorLanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#else
  return hn::MulAdd(a, b, c);
#endif
}

// Returns 2^x with an error below 1 ulp. The result is 0 below -126, infinity from 128 on, and NaN
// for NaN.
HWY_INLINE RowVector Exp2Row(RowVector x) {
  const RowTag d;
  const hn::RebindToSigned<RowTag> di;
  // x = k + r. Adding 1.5 * 2^23 rounds to an integer, k, and leaves it in the low bits; r is
  // exact.
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto shifted = hn::Add(x, shift);
  const auto r = hn::Sub(x, hn::Sub(shifted, shift));
  auto p = hn::Set(d, 0x1.41fbbcp-13f);
  p = FusedMulAdd(p, r, hn::Set(d, 0x1.5f3e52p-10f));
  p = FusedMulAdd(p, r, hn::Set(d, 0x1.3b2d4cp-7f));
  p = FusedMulAdd(p, r, hn::Set(d, 0x1.c6aee8p-5f));
  p = FusedMulAdd(p, r, hn::Set(d, 0x1.ebfbdcp-3f));
  p = FusedMulAdd(p, r, hn::Set(d, 0x1.62e43p-1f));
  p = FusedMulAdd(p, r, hn::Set(d, 1.0f));
  // Multiplies by 2^k by adding k to the exponent. Between the limits the result is normal.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  auto y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, 128.0f)), y, hn::Add(x, hn::Set(d, HUGE_VALF)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), y);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NUMSIM_OPS_FUSED_ROWS_INL_H_
