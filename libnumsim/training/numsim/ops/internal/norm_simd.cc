#include "numsim/ops/internal/ops_simd.h"

// Arrays of vectors require a vector size known at compile time, which these targets lack.
#ifndef HWY_DISABLED_TARGETS  // predefined in sanitizer builds, which disable more targets
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/ops/internal/norm_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {

using Matrix = MatrixSpan<float>;
using Input = MatrixSpan<const float>;

#define NUMSIM_RULE HWY_INLINE
#define NUMSIM_BODY HWY_ATTR
#include "numsim/ops/internal/norm_rule.inc"
#undef NUMSIM_BODY
#undef NUMSIM_RULE

// Calls rule(lanes, r, v, sums...) for each vector v of each row r.
template <class Rule, class... Sums>
HWY_INLINE void ForVectors(size_t rows, size_t vectors, const Rule& rule, const Sums&... sums) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t v = 0; v < vectors; ++v) rule(RowLanes(), r, v, sums...);
  }
}

void RmsNormRows(Input x, Input gain, double epsilon, Matrix inverse, Matrix y) {
  ForVectors(x.rows, inverse.cols, RmsNormRule{x, gain.data, gain.cols, epsilon, inverse, y});
}

void RmsNormGradientRows(Input g, Input x, Input gain, Input inverse, float* gain_sums, Matrix dx) {
  ForVectors(x.rows,
             inverse.cols,
             RmsNormGradientRule{g, x, gain.data, gain.cols, inverse, dx},
             MemorySums<1>{{gain_sums}});
}

void LayerNormRows(
    Input x, Input gain, Input bias, double epsilon, Matrix mean, Matrix inverse, Matrix y) {
  ForVectors(x.rows,
             inverse.cols,
             LayerNormRule{x, gain.data, bias.data, gain.cols, epsilon, mean, inverse, y});
}

void LayerNormGradientRows(Input g,
                           Input x,
                           Input gain,
                           Input mean,
                           Input inverse,
                           float* gain_sums,
                           float* bias_sums,
                           Matrix dx) {
  ForVectors(x.rows,
             inverse.cols,
             LayerNormGradientRule{g, x, gain.data, gain.cols, mean, inverse, dx},
             MemorySums<2>{{gain_sums, bias_sums}});
}

void UnitNormRows(Input x, Matrix inverse, Matrix y) {
  ForVectors(x.rows, 1, UnitNormRule{x, x.cols, inverse, y});
}

void UnitNormGradientRows(Input g, Input y, Input inverse, Matrix dx) {
  ForVectors(y.rows, 1, UnitNormGradientRule{g, y, y.cols, inverse, dx});
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(RmsNormRows);
HWY_EXPORT(RmsNormGradientRows);
HWY_EXPORT(LayerNormRows);
HWY_EXPORT(LayerNormGradientRows);
HWY_EXPORT(UnitNormRows);
HWY_EXPORT(UnitNormGradientRows);

void RmsNormPart(MatrixSpan<const float> x,
                 MatrixSpan<const float> gain,
                 double epsilon,
                 MatrixSpan<float> inverse,
                 MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsNormRows)(x, gain, epsilon, inverse, y);
}
void RmsNormGradientPart(MatrixSpan<const float> g,
                         MatrixSpan<const float> x,
                         MatrixSpan<const float> gain,
                         MatrixSpan<const float> inverse,
                         float* gain_sums,
                         MatrixSpan<float> dx) noexcept {
  HWY_DYNAMIC_DISPATCH(RmsNormGradientRows)(g, x, gain, inverse, gain_sums, dx);
}
void LayerNormPart(MatrixSpan<const float> x,
                   MatrixSpan<const float> gain,
                   MatrixSpan<const float> bias,
                   double epsilon,
                   MatrixSpan<float> mean,
                   MatrixSpan<float> inverse,
                   MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(LayerNormRows)(x, gain, bias, epsilon, mean, inverse, y);
}
void LayerNormGradientPart(MatrixSpan<const float> g,
                           MatrixSpan<const float> x,
                           MatrixSpan<const float> gain,
                           MatrixSpan<const float> mean,
                           MatrixSpan<const float> inverse,
                           float* gain_sums,
                           float* bias_sums,
                           MatrixSpan<float> dx) noexcept {
  HWY_DYNAMIC_DISPATCH(LayerNormGradientRows)
  (g, x, gain, mean, inverse, gain_sums, bias_sums, dx);
}
void UnitNormPart(MatrixSpan<const float> x,
                  MatrixSpan<float> inverse,
                  MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(UnitNormRows)(x, inverse, y);
}
void UnitNormGradientPart(MatrixSpan<const float> g,
                          MatrixSpan<const float> y,
                          MatrixSpan<const float> inverse,
                          MatrixSpan<float> dx) noexcept {
  HWY_DYNAMIC_DISPATCH(UnitNormGradientRows)(g, y, inverse, dx);
}

}  // namespace numsim
#endif  // HWY_ONCE
