#include "numsim/ops/internal/ops_simd.h"

// Arrays of vectors require a vector size known at compile time, which these targets lack.
#ifndef HWY_DISABLED_TARGETS  // predefined in sanitizer builds, which disable more targets
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/ops/internal/activation_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {

using Matrix = MatrixSpan<float>;
using Input = MatrixSpan<const float>;

#define NUMSIM_RULE HWY_INLINE
#define NUMSIM_BODY HWY_ATTR
#include "numsim/ops/internal/activation_rule.inc"
#undef NUMSIM_BODY
#undef NUMSIM_RULE

template <class Rule>
HWY_INLINE void ForAllRows(size_t rows, size_t cols, const Rule& rule) {
  for (size_t r = 0; r < rows; ++r) rule(RowLanes(), r, 0, cols);
}

void GeluRows(Input x, Matrix y) { ForAllRows(x.rows, x.cols, GeluRule{x, y}); }

void GeluGradientRows(Input g, Input x, Matrix dx) {
  ForAllRows(x.rows, x.cols, GeluGradientRule{g, x, dx});
}

void ReluRows(Input x, Matrix y) { ForAllRows(x.rows, x.cols, ReluRule{x, y}); }

void ReluGradientRows(Input g, Input x, Matrix dx) {
  ForAllRows(x.rows, x.cols, ReluGradientRule{g, x, dx});
}

void SwigluRows(Input x, Matrix y) { ForAllRows(y.rows, y.cols, SwigluRule{x, y.cols, y}); }

void SwigluGradientRows(Input g, Input x, Matrix dx) {
  ForAllRows(g.rows, g.cols, SwigluGradientRule{g, x, g.cols, dx});
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(GeluRows);
HWY_EXPORT(GeluGradientRows);
HWY_EXPORT(ReluRows);
HWY_EXPORT(ReluGradientRows);
HWY_EXPORT(SwigluRows);
HWY_EXPORT(SwigluGradientRows);

void GeluPart(MatrixSpan<const float> x, MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(GeluRows)(x, y);
}
void GeluGradientPart(MatrixSpan<const float> g,
                      MatrixSpan<const float> x,
                      MatrixSpan<float> dx) noexcept {
  HWY_DYNAMIC_DISPATCH(GeluGradientRows)(g, x, dx);
}
void ReluPart(MatrixSpan<const float> x, MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(ReluRows)(x, y);
}
void ReluGradientPart(MatrixSpan<const float> g,
                      MatrixSpan<const float> x,
                      MatrixSpan<float> dx) noexcept {
  HWY_DYNAMIC_DISPATCH(ReluGradientRows)(g, x, dx);
}
void SwigluPart(MatrixSpan<const float> x, MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(SwigluRows)(x, y);
}
void SwigluGradientPart(MatrixSpan<const float> g,
                        MatrixSpan<const float> x,
                        MatrixSpan<float> dx) noexcept {
  HWY_DYNAMIC_DISPATCH(SwigluGradientRows)(g, x, dx);
}

}  // namespace numsim
#endif  // HWY_ONCE
