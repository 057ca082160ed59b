#include "numsim/quantize/internal/two_levels_simd.h"

#include <limits>

#include "numsim/backend/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/quantize/internal/two_levels_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns x >= 0 rounded to e4m3fn, nearest even, saturating at 448. Below 2^-6 its values are the
// multiples of 2^-9, which is the ulp of the sum.
template <class D>
HWY_INLINE hn::Vec<D> RoundToE4m3(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto largest = hn::Set(d, 448.0f), shift = hn::Set(d, 0x1p14f);
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<20>(bits), hn::Set(du, 1u));
  const auto sum = hn::Add(hn::Add(bits, hn::Set(du, 0x7FFFFu)), odd);
  const auto normal = hn::BitCast(d, hn::And(sum, hn::Set(du, 0xFFF00000u)));
  const auto subnormal = hn::Sub(hn::Add(x, shift), shift);
  const auto rounded = hn::IfThenElse(hn::Lt(x, hn::Set(d, 0x1p-6f)), subnormal, normal);
  return hn::IfThenElse(hn::Lt(x, largest), rounded, largest);
}

// Writes the scales of one vector of groups.
template <class D>
HWY_INLINE void MakeVector(
    D d, const ScaleLevels& levels, const float* absmax, float* scales, float* inv_scales) {
  const auto most = hn::Set(d, std::numeric_limits<float>::max());
  const auto quotient = hn::Div(hn::LoadU(d, absmax), hn::Set(d, levels.divisor));
  const auto share = hn::Mul(quotient, hn::Set(d, levels.factor));
  const auto scale = hn::Mul(RoundToE4m3(d, share), hn::Set(d, levels.tensor));
  const auto inverse = hn::Div(hn::Set(d, 1.0f), scale);
  const auto bounded = hn::IfThenElse(hn::Lt(inverse, most), inverse, most);
  hn::StoreU(scale, d, scales);
  hn::StoreU(hn::IfThenZeroElse(hn::Eq(scale, hn::Zero(d)), bounded), d, inv_scales);
}

void MakeVectors(
    const ScaleLevels& levels, const float* absmax, size_t n, float* scales, float* inv_scales) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) MakeVector(d, levels, absmax + i, scales + i, inv_scales + i);
  for (; i < n; ++i) MakeVector(d1, levels, absmax + i, scales + i, inv_scales + i);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(MakeVectors);

void MakeTwoLevelScales(
    const ScaleFactory& maker, const float* absmax, size_t n, float* scales, float* inv_scales) {
  if (!UsesScalarReference()) {
    return HWY_DYNAMIC_DISPATCH(MakeVectors)(maker.Levels(), absmax, n, scales, inv_scales);
  }
  for (size_t i = 0; i < n; ++i) {
    const Scale made = maker(absmax[i]);
    scales[i] = made.scale;
    inv_scales[i] = made.inv_scale;
  }
}

}  // namespace numsim
#endif  // HWY_ONCE
