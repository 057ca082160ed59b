#include "numsim/cast/internal/round_step_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/cast/internal/round_step_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/cast/internal/odd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without a fused multiply-add instruction, Highway's MulAdd rounds twice.
#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// The sign and magnitude of x, and the constants of its rounding to the grid.
template <class DF>
struct GridRounding {
  using DU = hn::RebindToUnsigned<DF>;
  using V = hn::Vec<DF>;
  hn::Vec<DU> sign, magnitude;
  V small;
  hn::Mask<DF> is_small;

  HWY_INLINE GridRounding(const NearestGrid& grid, V x) {
    const DF df;
    const DU du;
    const auto bits = hn::BitCast(du, x);
    sign = hn::And(bits, hn::Set(du, 0x80000000u));
    magnitude = hn::Sub(bits, sign);
    const auto a = hn::BitCast(df, magnitude);
    const auto shift = hn::Set(df, grid.shift);
    small = hn::Sub(hn::Add(a, shift), shift);
    is_small = hn::Lt(a, hn::Set(df, grid.min_normal));
  }

  // Returns the lanes in which x lies halfway between two values.
  HWY_INLINE hn::Mask<DF> Ties(const NearestGrid& grid) const {
    const DF df;
    const DU du;
    const uint32_t mask = (1u << grid.cut) - 1;
    const auto below = hn::And(magnitude, hn::Set(du, mask));
    const auto large_tie = hn::RebindMask(df, hn::Eq(below, hn::Set(du, mask / 2 + 1)));
    const auto distance = hn::Abs(hn::Sub(hn::BitCast(df, magnitude), small));
    const auto small_tie = hn::Eq(distance, hn::Set(df, grid.half_spacing));
    return hn::Or(hn::And(is_small, small_tie), hn::AndNot(is_small, large_tie));
  }

  // Returns x rounded to the nearest value, ties to even.
  HWY_INLINE V Nearest(const NearestGrid& grid) const {
    const DF df;
    const DU du;
    const uint32_t mask = (1u << grid.cut) - 1;
    const auto last = hn::And(hn::ShiftRightSame(magnitude, grid.cut), hn::Set(du, 1));
    const auto up = hn::Add(hn::Add(magnitude, hn::Set(du, mask / 2)), last);
    const auto large = hn::BitCast(df, hn::And(up, hn::Set(du, ~mask)));
    const auto rounded = hn::Min(hn::IfThenElse(is_small, small, large), hn::Set(df, grid.max));
    const auto value = hn::BitCast(df, hn::Or(hn::BitCast(du, rounded), sign));
    return grid.negative_zero ? value : hn::Add(value, hn::Zero(df));
  }
};

// Returns numbers with the exact signs of base + direction * factor - nearest, for one half of the
// lanes. The product is exact in float64. The error of the float64 sum matters only where that sum
// equals `nearest`.
template <class DD, class VD = hn::Vec<DD>>
HWY_INLINE VD Residual(DD, VD base, VD direction, VD factor, VD nearest) {
  const auto product = hn::Mul(direction, factor);
  const auto sum = hn::Add(base, product);
  const auto product_part = hn::Sub(sum, base);
  const auto base_part = hn::Sub(sum, product_part);
  const auto error = hn::Add(hn::Sub(base, base_part), hn::Sub(product, product_part));
  return hn::Add(hn::Sub(sum, nearest), error);
}

// Returns base + direction * factor rounded to odd, where `nearest` is the float32 nearest to the
// exact sum. Next to a tie this puts the sum on the correct side. Elsewhere no rounding to fewer
// bits sees the difference [Boldo].
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE V OddSum(DF df, V base, V direction, V factor, V nearest) {
  const hn::Half<DF> dh;
  const hn::Rebind<double, decltype(dh)> dd;
  const auto lower = [&](V x) HWY_ATTR { return hn::PromoteTo(dd, hn::LowerHalf(dh, x)); };
  const auto upper = [&](V x) HWY_ATTR { return hn::PromoteTo(dd, hn::UpperHalf(dh, x)); };
  const auto low = Residual(dd, lower(base), lower(direction), lower(factor), lower(nearest));
  const auto high = Residual(dd, upper(base), upper(direction), upper(factor), upper(nearest));
  // Only the sign of a residual is needed. Converting the residual itself to float32 could lose it.
  const auto sign_of = [&](hn::Vec<decltype(dd)> x) HWY_ATTR {
    const auto zero = hn::Zero(dd);
    const auto one = hn::CopySign(hn::Set(dd, 1.0), x);
    return hn::DemoteTo(dh, hn::IfThenElse(hn::Eq(x, zero), zero, one));
  };
  return ToOdd(df, nearest, hn::Combine(df, sign_of(high), sign_of(low)));
}

// Replaces `sum`, the float32 nearest to base + direction * factor, by the exact sum rounded to odd in
// the lanes `ties`, where the error has its exact sign after two operations. Returns false if there
// are other lanes. sum - base is exact if it is at most half of base [Sterbenz]. Its difference from
// the product, rounded once, has the sign of the error unless it underflows. It does not if the
// product is at least 2^-70, because both are then multiples of 2^-118.
template <class DF, class V = hn::Vec<DF>>
HWY_INLINE bool OddTies(DF df, hn::Mask<DF> ties, V base, V direction, V factor, V& sum) {
  const auto moved = hn::Sub(sum, base);
  const auto near = hn::Le(hn::Abs(moved), hn::Mul(hn::Abs(base), hn::Set(df, 0.5f)));
  const auto large = hn::Ge(hn::Abs(hn::Mul(direction, factor)), hn::Set(df, 0x1p-70f));
  if (HWY_UNLIKELY(!hn::AllFalse(df, hn::AndNot(hn::And(near, large), ties)))) return false;
  const auto error = hn::MulSub(direction, factor, moved);
  sum = hn::IfThenElse(ties, ToOdd(df, sum, error), sum);
  return true;
}

// The two ways to add a step. Both return false and store nothing if a sum is NaN.

// Rounds the exact sum once.
struct ExactSteps {
  template <class DF, class V = hn::Vec<DF>>
  static HWY_INLINE bool Step(
      DF df, const NearestGrid& grid, V base, V direction, V factor, float* out) {
    auto sum = hn::MulAdd(direction, factor, base);
    GridRounding<DF> rounding(grid, sum);
    const auto ties = rounding.Ties(grid);
    if (HWY_UNLIKELY(!hn::AllFalse(df, hn::Or(ties, hn::IsNaN(sum))))) {
      if (!hn::AllFalse(df, hn::IsNaN(sum))) return false;
      if (!OddTies(df, ties, base, direction, factor, sum)) {
        sum = OddSum(df, base, direction, factor, sum);
      }
      rounding = GridRounding<DF>(grid, sum);
    }
    hn::StoreU(rounding.Nearest(grid), df, out);
    return true;
  }
};

// Rounds product and sum to float32 first.
struct FloatSteps {
  template <class DF, class V = hn::Vec<DF>>
  static HWY_INLINE bool Step(
      DF df, const NearestGrid& grid, V base, V direction, V factor, float* out) {
    const auto sum = hn::Add(base, hn::Mul(direction, factor));
    if (HWY_UNLIKELY(!hn::AllFalse(df, hn::IsNaN(sum)))) return false;
    hn::StoreU(GridRounding<DF>(grid, sum).Nearest(grid), df, out);
    return true;
  }
};

template <class Steps>
HWY_INLINE size_t StepRangeOf(const NearestGrid& grid_ref,
                              const float* w,
                              const float* u,
                              float factor_value,
                              size_t n,
                              float* out) {
  // In elements. The processor's own prefetch stops at every page.
  constexpr size_t kAhead = 1024;
  const NearestGrid grid = grid_ref;  // a local copy: the stores below cannot alias it
  const hn::ScalableTag<float> df;
  const size_t lanes = hn::Lanes(df);
  const auto factor = hn::Set(df, factor_value);
  const auto step = [&](const float* base, const float* direction, float* to) HWY_ATTR {
    return Steps::Step(df, grid, hn::LoadU(df, base), hn::LoadU(df, direction), factor, to);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(w + i + kAhead);
    hwy::Prefetch(u + i + kAhead);
    if (!step(w + i, u + i, out + i)) return i;
  }
  if (i == n) return n;
  float w_tail[HWY_MAX_BYTES / sizeof(float)] = {};
  float u_tail[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy(w + i, w + n, w_tail);
  std::copy(u + i, u + n, u_tail);
  if (!step(w_tail, u_tail, w_tail)) return i;
  std::copy(w_tail, w_tail + (n - i), out + i);
  return n;
}

size_t StepRange(
    const NearestGrid& grid, const float* w, const float* u, float factor, size_t n, float* out) {
  return StepRangeOf<ExactSteps>(grid, w, u, factor, n, out);
}
size_t FloatStepRange(
    const NearestGrid& grid, const float* w, const float* u, float factor, size_t n, float* out) {
  return StepRangeOf<FloatSteps>(grid, w, u, factor, n, out);
}

#else
size_t StepRange(const NearestGrid&, const float*, const float*, float, size_t, float*) {
  return 0;
}
size_t FloatStepRange(const NearestGrid&, const float*, const float*, float, size_t, float*) {
  return 0;
}
#endif

bool HasFusedSteps() { return HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE; }

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(StepRange);
HWY_EXPORT(FloatStepRange);
HWY_EXPORT(HasFusedSteps);

bool HasFusedSteps() { return HWY_DYNAMIC_DISPATCH(HasFusedSteps)(); }

size_t RoundStepSimd(const NearestGrid& grid,
                     const float* base,
                     const float* direction,
                     float factor,
                     size_t n,
                     float* out) {
  return HWY_DYNAMIC_DISPATCH(StepRange)(grid, base, direction, factor, n, out);
}

size_t RoundFloatStepSimd(const NearestGrid& grid,
                          const float* base,
                          const float* direction,
                          float factor,
                          size_t n,
                          float* out) {
  return HWY_DYNAMIC_DISPATCH(FloatStepRange)(grid, base, direction, factor, n, out);
}

}  // namespace numsim
#endif  // HWY_ONCE
