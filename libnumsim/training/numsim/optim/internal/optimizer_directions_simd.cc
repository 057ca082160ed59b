#include <type_traits>

#include "numsim/optim/optimizer_directions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/optim/internal/optimizer_directions_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(tag, i) for whole vectors at i = 0, lanes, 2 lanes, ..., then for single elements.
// Both run the same code, so the tail cannot differ.
template <class Body>
HWY_INLINE void ForEachVector(size_t n, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) body(d, i);
  for (; i < n; ++i) body(one, i);
}

// The lanes of directions_rule.inc.
template <class D>
struct DirectionLanes {
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  D d;

  HWY_INLINE V Set(float x) const { return hn::Set(d, x); }
  HWY_INLINE V Add(V a, V b) const { return hn::Add(a, b); }
  HWY_INLINE V Mul(V a, V b) const { return hn::Mul(a, b); }
  HWY_INLINE V Div(V a, V b) const { return hn::Div(a, b); }
  HWY_INLINE V DivBy(V a, float b) const { return hn::Div(a, Set(b)); }
  HWY_INLINE V Sqrt(V a) const { return hn::Sqrt(a); }
  HWY_INLINE V Neg(V a) const { return hn::Neg(a); }
  HWY_INLINE M Lt(V a, V b) const { return hn::Lt(a, b); }
  HWY_INLINE M Gt(V a, V b) const { return hn::Gt(a, b); }
  HWY_INLINE V Select(M m, V yes, V no) const { return hn::IfThenElse(m, yes, no); }
};
template <class D>
HWY_INLINE DirectionLanes<D> LanesOf(D d) {
  return {d};
}

#define NUMSIM_RULE HWY_INLINE
#include "numsim/optim/internal/directions_rule.inc"
#undef NUMSIM_RULE

void AverageOf(const float* x, size_t n, AverageRates rates, float* average) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto old = hn::LoadU(d, average + i);
    hn::StoreU(AverageLanes(LanesOf(d), old, hn::LoadU(d, x + i), rates), d, average + i);
  });
}

void SquareAverageOf(const float* x, size_t n, AverageRates rates, float* square) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    const auto v = hn::LoadU(d, square + i);
    hn::StoreU(AverageLanes(LanesOf(d), v, hn::Mul(value, value), rates), d, square + i);
  });
}

void AdamDirectionOf(const float* m,
                     const float* v,
                     size_t n,
                     float m_correction,
                     AdamDenominator denominator,
                     float* direction) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto mean = hn::LoadU(d, m + i), square = hn::LoadU(d, v + i);
    hn::StoreU(
        AdamDirectionLanes(LanesOf(d), mean, square, m_correction, denominator), d, direction + i);
  });
}

void GradientRatiosOf(const float* x,
                      const float* v,
                      size_t n,
                      AdamDenominator denominator,
                      bool added,
                      float* ratios) {
  const auto compute = [&](auto added_of_all) HWY_ATTR {
    ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
      const auto value = hn::LoadU(d, x + i), square = hn::LoadU(d, v + i);
      hn::StoreU(
          GradientRatioLanes(LanesOf(d), value, square, denominator, added_of_all), d, ratios + i);
    });
  };
  if (added) {
    compute(std::true_type());
  } else {
    compute(std::false_type());
  }
}

void LionDirectionOf(
    const float* x, const float* m, size_t n, AverageRates rates, float* direction) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i), old = hn::LoadU(d, m + i);
    hn::StoreU(LionDirectionLanes(LanesOf(d), value, old, rates), d, direction + i);
  });
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(AverageOf);
HWY_EXPORT(SquareAverageOf);
HWY_EXPORT(AdamDirectionOf);
HWY_EXPORT(GradientRatiosOf);
HWY_EXPORT(LionDirectionOf);

void UpdateAverage(const float* x, size_t n, AverageRates rates, float* average) noexcept {
  HWY_DYNAMIC_DISPATCH(AverageOf)(x, n, rates, average);
}

void UpdateSquareAverage(const float* x, size_t n, AverageRates rates, float* square) noexcept {
  HWY_DYNAMIC_DISPATCH(SquareAverageOf)(x, n, rates, square);
}

void AdamDirection(const float* m,
                   const float* v,
                   size_t n,
                   float m_correction,
                   AdamDenominator denominator,
                   float* direction) noexcept {
  HWY_DYNAMIC_DISPATCH(AdamDirectionOf)
  (m, v, n, m_correction, denominator, direction);
}

void GradientRatios(const float* x,
                    const float* v,
                    size_t n,
                    AdamDenominator denominator,
                    bool added,
                    float* ratios) noexcept {
  HWY_DYNAMIC_DISPATCH(GradientRatiosOf)(x, v, n, denominator, added, ratios);
}

void LionDirection(
    const float* x, const float* m, size_t n, AverageRates rates, float* direction) noexcept {
  HWY_DYNAMIC_DISPATCH(LionDirectionOf)(x, m, n, rates, direction);
}

}  // namespace numsim
#endif  // HWY_ONCE
