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
namespace hn = hwy::HWY_NAMESPACE;

using Matrix = MatrixSpan<float>;
using Input = MatrixSpan<const float>;

// y = f(x).
template <class Function>
HWY_INLINE void Map(Input x, Matrix y, const Function& f) {
  for (size_t r = 0; r < x.rows; ++r) {
    const float* const from = x.Row(r);
    float* const to = y.Row(r);
    ForRow(x.cols, [&](size_t i, size_t count) HWY_ATTR {
      StoreRow(f(LoadRow(from + i, count)), to + i, count);
    });
  }
}
// dx = f(g, x).
template <class Function>
HWY_INLINE void MapPairs(Input g, Input x, Matrix dx, const Function& f) {
  for (size_t r = 0; r < x.rows; ++r) {
    const float *const d = g.Row(r), *const from = x.Row(r);
    float* const to = dx.Row(r);
    ForRow(x.cols, [&](size_t i, size_t count) HWY_ATTR {
      StoreRow(f(LoadRow(d + i, count), LoadRow(from + i, count)), to + i, count);
    });
  }
}

// Returns 2 u for GELU's tanh(u), because (1 + tanh(u)) / 2 = sigmoid(2 u).
HWY_INLINE RowVector GeluExponent(RowVector x, RowVector square) {
  const RowTag d;
  const auto inner = hn::Add(hn::Mul(square, hn::Set(d, 0.0713548163f)), hn::Set(d, 1.59576912f));
  return hn::Mul(x, inner);
}

void GeluRows(Input x, Matrix y) {
  Map(x, y, [](RowVector v) HWY_ATTR {
    return hn::Mul(v, SigmoidRow(GeluExponent(v, hn::Mul(v, v))));
  });
}

void GeluGradientRows(Input g, Input x, Matrix dx) {
  MapPairs(g, x, dx, [](RowVector gradient, RowVector v) HWY_ATTR {
    const RowTag d;
    const auto square = hn::Mul(v, v);
    const SigmoidParts share = SigmoidPartsRow(GeluExponent(v, square));
    // The derivative of 2 u is bounded, because it must not be infinite where the sigmoid is 0 or
    // 1.
    const auto bounded = hn::Min(square, hn::Set(d, 1000.0f));
    const auto slope = hn::Add(hn::Mul(bounded, hn::Set(d, 0.214064449f)), hn::Set(d, 1.59576912f));
    const auto bend = hn::Mul(hn::Mul(hn::Mul(v, share.s), share.rest), slope);
    return hn::Mul(gradient, hn::Add(share.s, bend));
  });
}

void ReluRows(Input x, Matrix y) {
  Map(x, y, [](RowVector v) HWY_ATTR {
    const auto zero = hn::Zero(RowTag());
    return hn::IfThenElse(hn::Lt(v, zero), zero, v);
  });
}

void ReluGradientRows(Input g, Input x, Matrix dx) {
  MapPairs(g, x, dx, [](RowVector gradient, RowVector v) HWY_ATTR {
    const auto zero = hn::Zero(RowTag());
    return hn::IfThenElse(hn::Le(v, zero), zero, gradient);
  });
}

void SwigluRows(Input x, Matrix y) {
  for (size_t r = 0; r < y.rows; ++r) {
    const float *const gates = x.Row(r), *const linear = gates + y.cols;
    float* const to = y.Row(r);
    ForRow(y.cols, [&](size_t i, size_t count) HWY_ATTR {
      const auto gate = LoadRow(gates + i, count);
      const auto swish = hn::Mul(gate, SigmoidRow(gate));
      StoreRow(hn::Mul(swish, LoadRow(linear + i, count)), to + i, count);
    });
  }
}

void SwigluGradientRows(Input g, Input x, Matrix dx) {
  for (size_t r = 0; r < g.rows; ++r) {
    const float *const d = g.Row(r), *const gates = x.Row(r), *const linear = gates + g.cols;
    float *const to_gates = dx.Row(r), *const to_linear = to_gates + g.cols;
    ForRow(g.cols, [&](size_t i, size_t count) HWY_ATTR {
      const auto gradient = LoadRow(d + i, count), gate = LoadRow(gates + i, count);
      const SigmoidParts share = SigmoidPartsRow(gate);
      const auto swish = hn::Mul(gate, share.s);
      const auto slope = hn::Add(share.s, hn::Mul(swish, share.rest));
      const auto of_gate = hn::Mul(hn::Mul(gradient, LoadRow(linear + i, count)), slope);
      StoreRow(of_gate, to_gates + i, count);
      StoreRow(hn::Mul(gradient, swish), to_linear + i, count);
    });
  }
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
