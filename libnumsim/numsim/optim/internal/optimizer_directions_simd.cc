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

// Returns fl(fl(keep a) + fl(share x)).
template <class D, class V>
HWY_INLINE V Average(D d, V a, V x, AverageRates rates) {
  return hn::Add(hn::Mul(hn::Set(d, rates.keep), a), hn::Mul(hn::Set(d, rates.share), x));
}

// Returns s of AdamDenominator.
template <class D, class V>
HWY_INLINE V RootSquare(D d, V v, const AdamDenominator& denominator) {
  return hn::Sqrt(hn::Div(v, hn::Set(d, denominator.correction)));
}

void AverageOf(const float* x, size_t n, AverageRates rates, float* average) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(Average(d, hn::LoadU(d, average + i), hn::LoadU(d, x + i), rates), d, average + i);
  });
}

void SquareAverageOf(const float* x, size_t n, AverageRates rates, float* square) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto value = hn::LoadU(d, x + i);
    const auto v = hn::LoadU(d, square + i);
    hn::StoreU(Average(d, v, hn::Mul(value, value), rates), d, square + i);
  });
}

void AdamDirectionOf(const float* m,
                     const float* v,
                     size_t n,
                     float m_correction,
                     AdamDenominator denominator,
                     float* direction) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto mean = hn::Div(hn::LoadU(d, m + i), hn::Set(d, m_correction));
    const auto root = RootSquare(d, hn::LoadU(d, v + i), denominator);
    const auto divisor = hn::Add(root, hn::Set(d, denominator.epsilon));
    hn::StoreU(hn::Neg(hn::Div(mean, divisor)), d, direction + i);
  });
}

template <bool kAdded>
void RatiosOf(
    const float* x, const float* v, size_t n, AdamDenominator denominator, float* ratios) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto epsilon = hn::Set(d, denominator.epsilon);
    const auto root = RootSquare(d, hn::LoadU(d, v + i), denominator);
    auto divisor = root;
    if constexpr (kAdded) {
      divisor = hn::Add(root, epsilon);
    } else {
      divisor = hn::IfThenElse(hn::Lt(root, epsilon), epsilon, root);  // keeps NaN
    }
    hn::StoreU(hn::Div(hn::LoadU(d, x + i), divisor), d, ratios + i);
  });
}

void GradientRatiosOf(const float* x,
                      const float* v,
                      size_t n,
                      AdamDenominator denominator,
                      bool added,
                      float* ratios) {
  if (added) {
    RatiosOf<true>(x, v, n, denominator, ratios);
  } else {
    RatiosOf<false>(x, v, n, denominator, ratios);
  }
}

void LionDirectionOf(
    const float* x, const float* m, size_t n, AverageRates rates, float* direction) {
  ForEachVector(n, [&](auto d, size_t i) HWY_ATTR {
    const auto zero = hn::Zero(d);
    const auto y = Average(d, hn::LoadU(d, m + i), hn::LoadU(d, x + i), rates);
    const auto up = hn::IfThenElse(hn::Lt(y, zero), hn::Set(d, 1.0f), hn::Add(y, zero));
    hn::StoreU(hn::IfThenElse(hn::Gt(y, zero), hn::Set(d, -1.0f), up), d, direction + i);
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
