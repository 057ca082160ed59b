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
namespace hn = hwy::HWY_NAMESPACE;

using Matrix = MatrixSpan<float>;
using Input = MatrixSpan<const float>;

HWY_INLINE float SumOfProducts(const float* a, const float* b, size_t n) {
  return SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
    return hn::Mul(LoadRow(a + i, count), LoadRow(b + i, count));
  });
}

// In float64, because these are computed only once or twice per vector.
HWY_INLINE float Mean(float sum, size_t n) {
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(n));
}
HWY_INLINE float InverseRoot(float square_sum, size_t n, double epsilon) {
  return static_cast<float>(
      1 / std::sqrt(static_cast<double>(square_sum) / static_cast<double>(n) + epsilon));
}

// Calls body(r, v, begin) for each vector v of each row r, where `begin` is the vector's first
// column.
template <class Body>
HWY_INLINE void ForVectors(size_t rows, size_t cols, size_t n, const Body& body) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t v = 0, begin = 0; begin < cols; ++v, begin += n) body(r, v, begin);
  }
}

void RmsNormRows(Input x, Input gain, double epsilon, Matrix inverse, Matrix y) {
  const size_t n = gain.cols;
  ForVectors(x.rows, x.cols, n, [&](size_t r, size_t v, size_t begin) HWY_ATTR {
    const float* const from = x.Row(r) + begin;
    float* const to = y.Row(r) + begin;
    const float factor = InverseRoot(SumOfProducts(from, from, n), n, epsilon);
    inverse.Row(r)[v] = factor;
    const auto factors = hn::Set(RowTag(), factor);
    ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto normal = hn::Mul(LoadRow(from + i, count), factors);
      StoreRow(hn::Mul(normal, LoadRow(gain.data + i, count)), to + i, count);
    });
  });
}

void RmsNormGradientRows(Input g, Input x, Input gain, Input inverse, float* gain_sums, Matrix dx) {
  const RowTag d;
  const size_t n = gain.cols;
  ForVectors(x.rows, x.cols, n, [&](size_t r, size_t v, size_t begin) HWY_ATTR {
    const float *const gradients = g.Row(r) + begin, *const from = x.Row(r) + begin;
    float* const to = dx.Row(r) + begin;
    const auto factor = hn::Set(d, inverse.Row(r)[v]);
    const float sum = SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto normal = hn::Mul(LoadRow(from + i, count), factor);
      const auto product = hn::Mul(LoadRow(gradients + i, count), normal);
      StoreRow(hn::Add(LoadRow(gain_sums + i, count), product), gain_sums + i, count);
      return hn::Mul(product, LoadRow(gain.data + i, count));
    });
    const auto mean = hn::Set(d, Mean(sum, n));
    ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto normal = hn::Mul(LoadRow(from + i, count), factor);
      const auto scaled = hn::Mul(LoadRow(gradients + i, count), LoadRow(gain.data + i, count));
      StoreRow(hn::Mul(factor, hn::Sub(scaled, hn::Mul(normal, mean))), to + i, count);
    });
  });
}

void LayerNormRows(
    Input x, Input gain, Input bias, double epsilon, Matrix mean, Matrix inverse, Matrix y) {
  const RowTag d;
  const size_t n = gain.cols;
  ForVectors(x.rows, x.cols, n, [&](size_t r, size_t v, size_t begin) HWY_ATTR {
    const float* const from = x.Row(r) + begin;
    float* const to = y.Row(r) + begin;
    const auto element = [&](size_t i, size_t count) HWY_ATTR { return LoadRow(from + i, count); };
    const float center = Mean(SumRow(n, element), n);
    const auto centers = hn::Set(d, center);
    const float square_sum = SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto distance = hn::Sub(LoadRow(from + i, count), centers);
      return hn::Mul(distance, distance);
    });
    const float factor = InverseRoot(square_sum, n, epsilon);
    mean.Row(r)[v] = center;
    inverse.Row(r)[v] = factor;
    const auto factors = hn::Set(d, factor);
    ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto normal = hn::Mul(hn::Sub(LoadRow(from + i, count), centers), factors);
      const auto scaled = hn::Mul(normal, LoadRow(gain.data + i, count));
      StoreRow(hn::Add(scaled, LoadRow(bias.data + i, count)), to + i, count);
    });
  });
}

void LayerNormGradientRows(Input g,
                           Input x,
                           Input gain,
                           Input mean,
                           Input inverse,
                           float* gain_sums,
                           float* bias_sums,
                           Matrix dx) {
  const RowTag d;
  const size_t n = gain.cols;
  ForVectors(x.rows, x.cols, n, [&](size_t r, size_t v, size_t begin) HWY_ATTR {
    const float *const gradients = g.Row(r) + begin, *const from = x.Row(r) + begin;
    float* const to = dx.Row(r) + begin;
    const auto factor = hn::Set(d, inverse.Row(r)[v]), center = hn::Set(d, mean.Row(r)[v]);
    const auto normal = [&](size_t i, size_t count) HWY_ATTR {
      return hn::Mul(hn::Sub(LoadRow(from + i, count), center), factor);
    };
    const float product_sum = SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto gradient = LoadRow(gradients + i, count);
      const auto product = hn::Mul(gradient, normal(i, count));
      StoreRow(hn::Add(LoadRow(bias_sums + i, count), gradient), bias_sums + i, count);
      StoreRow(hn::Add(LoadRow(gain_sums + i, count), product), gain_sums + i, count);
      return hn::Mul(product, LoadRow(gain.data + i, count));
    });
    const auto scaled_mean = hn::Set(d, Mean(SumOfProducts(gradients, gain.data, n), n));
    const auto product_mean = hn::Set(d, Mean(product_sum, n));
    ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
      const auto scaled = hn::Mul(LoadRow(gradients + i, count), LoadRow(gain.data + i, count));
      const auto along = hn::Mul(normal(i, count), product_mean);
      const auto change = hn::Sub(hn::Sub(scaled, scaled_mean), along);
      StoreRow(hn::Mul(factor, change), to + i, count);
    });
  });
}

void UnitNormRows(Input x, Matrix inverse, Matrix y) {
  for (size_t r = 0; r < x.rows; ++r) {
    const float* const from = x.Row(r);
    float* const to = y.Row(r);
    const double norm = std::sqrt(static_cast<double>(SumOfProducts(from, from, x.cols)));
    const float factor = static_cast<float>(1 / std::max(norm, kLeastNorm));
    inverse.Row(r)[0] = factor;
    const auto factors = hn::Set(RowTag(), factor);
    ForRow(x.cols, [&](size_t i, size_t count) HWY_ATTR {
      StoreRow(hn::Mul(LoadRow(from + i, count), factors), to + i, count);
    });
  }
}

void UnitNormGradientRows(Input g, Input y, Input inverse, Matrix dx) {
  const RowTag d;
  for (size_t r = 0; r < y.rows; ++r) {
    const float *const gradients = g.Row(r), *const normal = y.Row(r);
    float* const to = dx.Row(r);
    const float factor = inverse.Row(r)[0];
    const bool constant = factor == static_cast<float>(1 / kLeastNorm);
    const float sum = constant ? 0 : SumOfProducts(gradients, normal, y.cols);
    const auto factors = hn::Set(d, factor), along = hn::Set(d, sum);
    ForRow(y.cols, [&](size_t i, size_t count) HWY_ATTR {
      const auto part = hn::Mul(LoadRow(normal + i, count), along);
      StoreRow(hn::Mul(factors, hn::Sub(LoadRow(gradients + i, count), part)), to + i, count);
    });
  }
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
