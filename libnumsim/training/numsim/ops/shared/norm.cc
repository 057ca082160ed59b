#include "numsim/ops/shared/norm.h"

#include <cmath>

#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/pieces.h"

namespace numsim {
namespace {

// The work of one thread, in float64; norm_simd.cc has the float32 versions.
using Matrix = MatrixSpan<double>;
using Input = MatrixSpan<const double>;

void RmsNormPart(Input x, Input gain, double epsilon, Matrix inverse, Matrix y) {
  const size_t n = gain.cols;
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t v = 0; v < x.cols / n; ++v) {
      const double* const from = x.Row(r) + v * n;
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += from[i] * from[i];
      const double factor = 1 / std::sqrt(sum / static_cast<double>(n) + epsilon);
      inverse.Row(r)[v] = factor;
      for (size_t i = 0; i < n; ++i) y.Row(r)[v * n + i] = from[i] * factor * gain.data[i];
    }
  }
}

void RmsNormGradientPart(
    Input g, Input x, Input gain, Input inverse, double* gain_sums, Matrix dx) {
  const size_t n = gain.cols;
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t v = 0; v < x.cols / n; ++v) {
      const double *const d = g.Row(r) + v * n, *const from = x.Row(r) + v * n;
      const double factor = inverse.Row(r)[v];
      double sum = 0;
      for (size_t i = 0; i < n; ++i) {
        const double normal = from[i] * factor;
        sum += d[i] * gain.data[i] * normal;
        gain_sums[i] += d[i] * normal;
      }
      const double mean = sum / static_cast<double>(n);
      double* const to = dx.Row(r) + v * n;
      for (size_t i = 0; i < n; ++i) {
        to[i] = factor * (d[i] * gain.data[i] - from[i] * factor * mean);
      }
    }
  }
}

void LayerNormPart(
    Input x, Input gain, Input bias, double epsilon, Matrix mean, Matrix inverse, Matrix y) {
  const size_t n = gain.cols;
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t v = 0; v < x.cols / n; ++v) {
      const double* const from = x.Row(r) + v * n;
      double sum = 0, square_sum = 0;
      for (size_t i = 0; i < n; ++i) sum += from[i];
      const double center = sum / static_cast<double>(n);
      for (size_t i = 0; i < n; ++i) {
        const double distance = from[i] - center;
        square_sum += distance * distance;
      }
      const double factor = 1 / std::sqrt(square_sum / static_cast<double>(n) + epsilon);
      mean.Row(r)[v] = center;
      inverse.Row(r)[v] = factor;
      for (size_t i = 0; i < n; ++i) {
        y.Row(r)[v * n + i] = (from[i] - center) * factor * gain.data[i] + bias.data[i];
      }
    }
  }
}

void LayerNormGradientPart(Input g,
                           Input x,
                           Input gain,
                           Input mean,
                           Input inverse,
                           double* gain_sums,
                           double* bias_sums,
                           Matrix dx) {
  const size_t n = gain.cols;
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t v = 0; v < x.cols / n; ++v) {
      const double *const d = g.Row(r) + v * n, *const from = x.Row(r) + v * n;
      const double factor = inverse.Row(r)[v], center = mean.Row(r)[v];
      double sum = 0, product_sum = 0;
      for (size_t i = 0; i < n; ++i) {
        const double normal = (from[i] - center) * factor;
        const double scaled = d[i] * gain.data[i];
        sum += scaled;
        product_sum += scaled * normal;
        gain_sums[i] += d[i] * normal;
        bias_sums[i] += d[i];
      }
      const double scaled_mean = sum / static_cast<double>(n);
      const double product_mean = product_sum / static_cast<double>(n);
      double* const to = dx.Row(r) + v * n;
      for (size_t i = 0; i < n; ++i) {
        const double normal = (from[i] - center) * factor;
        to[i] = factor * (d[i] * gain.data[i] - scaled_mean - normal * product_mean);
      }
    }
  }
}

void UnitNormPart(Input x, Matrix inverse, Matrix y) {
  for (size_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (size_t i = 0; i < x.cols; ++i) sum += x.Row(r)[i] * x.Row(r)[i];
    const double factor = 1 / std::max(std::sqrt(sum), kLeastNorm);
    inverse.Row(r)[0] = factor;
    for (size_t i = 0; i < x.cols; ++i) y.Row(r)[i] = x.Row(r)[i] * factor;
  }
}

void UnitNormGradientPart(Input g, Input y, Input inverse, Matrix dx) {
  for (size_t r = 0; r < y.rows; ++r) {
    const double factor = inverse.Row(r)[0];
    double sum = 0;
    for (size_t i = 0; i < y.cols; ++i) sum += g.Row(r)[i] * y.Row(r)[i];
    // Below the smallest norm, the factor is treated as a constant.
    const double along = factor == 1 / kLeastNorm ? 0 : sum;
    for (size_t i = 0; i < y.cols; ++i) {
      dx.Row(r)[i] = factor * (g.Row(r)[i] - y.Row(r)[i] * along);
    }
  }
}

// Checks the shapes of a norm whose vectors are as long as `gain`.
template <typename T>
void CheckNorm(const char* operation, In<T> x, In<T> gain, const MatrixSpan<T>& inverse) {
  NUMSIM_CHECK(gain.rows == 1 && gain.cols > 0 && x.cols % gain.cols == 0,
               "{}: {} columns, gain {} x {}",
               operation,
               x.cols,
               gain.rows,
               gain.cols);
  CheckShape(operation, inverse, x.rows, x.cols / gain.cols);
}

}  // namespace

template <typename T>
void RmsNorm(In<T> x, In<T> gain, double epsilon, MatrixSpan<T> inverse, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("RMSNorm", x, gain, inverse, y);
  CheckNorm("RmsNorm", x, gain, inverse);
  CheckShape("RmsNorm", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::RmsNorm(place, x, gain, epsilon, inverse, y);
  }
  ForRowRanges(x.rows, x.cols, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    RmsNormPart(x.Rows(begin, n), gain, epsilon, inverse.Rows(begin, n), y.Rows(begin, n));
  });
}

template <typename T>
void RmsNormGradient(
    In<T> g, In<T> x, In<T> gain, In<T> inverse, MatrixSpan<T> gain_gradient, MatrixSpan<T> dx) {
  const Place place = PlaceOf<T>("the gradient of RMSNorm", g, x, gain, inverse, gain_gradient, dx);
  CheckNorm<const T>("RmsNormGradient", x, gain, inverse);
  CheckShape("RmsNormGradient", g, x.rows, x.cols);
  CheckShape("RmsNormGradient", gain_gradient, 1, gain.cols);
  CheckShape("RmsNormGradient", dx, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) {
      return cuda::RmsNormGradient(place, g, x, gain, inverse, gain_gradient, dx);
    }
  }
  SumRowBlocks<T, 1>(x.rows, x.cols, {gain_gradient}, [&](size_t begin, size_t end, T* sums) {
    const size_t n = end - begin;
    RmsNormGradientPart(
        g.Rows(begin, n), x.Rows(begin, n), gain, inverse.Rows(begin, n), sums, dx.Rows(begin, n));
  });
}

template <typename T>
void LayerNorm(In<T> x,
               In<T> gain,
               In<T> bias,
               double epsilon,
               MatrixSpan<T> mean,
               MatrixSpan<T> inverse,
               MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("LayerNorm", x, gain, bias, mean, inverse, y);
  CheckNorm("LayerNorm", x, gain, inverse);
  CheckShape("LayerNorm", bias, 1, gain.cols);
  CheckShape("LayerNorm", mean, inverse.rows, inverse.cols);
  CheckShape("LayerNorm", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::LayerNorm(place, x, gain, bias, epsilon, mean, inverse, y);
  }
  ForRowRanges(x.rows, x.cols, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    LayerNormPart(x.Rows(begin, n),
                  gain,
                  bias,
                  epsilon,
                  mean.Rows(begin, n),
                  inverse.Rows(begin, n),
                  y.Rows(begin, n));
  });
}

template <typename T>
void LayerNormGradient(In<T> g,
                       In<T> x,
                       In<T> gain,
                       In<T> mean,
                       In<T> inverse,
                       MatrixSpan<T> gain_gradient,
                       MatrixSpan<T> bias_gradient,
                       MatrixSpan<T> dx) {
  const Place place = PlaceOf<T>(
      "the gradient of LayerNorm", g, x, gain, mean, inverse, gain_gradient, bias_gradient, dx);
  CheckNorm<const T>("LayerNormGradient", x, gain, inverse);
  CheckShape("LayerNormGradient", g, x.rows, x.cols);
  CheckShape("LayerNormGradient", mean, inverse.rows, inverse.cols);
  CheckShape("LayerNormGradient", gain_gradient, 1, gain.cols);
  CheckShape("LayerNormGradient", bias_gradient, 1, gain.cols);
  CheckShape("LayerNormGradient", dx, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) {
      return cuda::LayerNormGradient(
          place, g, x, gain, mean, inverse, gain_gradient, bias_gradient, dx);
    }
  }
  const auto add = [&](size_t begin, size_t end, T* sums) {
    const size_t n = end - begin;
    LayerNormGradientPart(g.Rows(begin, n),
                          x.Rows(begin, n),
                          gain,
                          mean.Rows(begin, n),
                          inverse.Rows(begin, n),
                          sums,
                          sums + gain.cols,
                          dx.Rows(begin, n));
  };
  SumRowBlocks<T, 2>(x.rows, x.cols, {gain_gradient, bias_gradient}, add);
}

template <typename T>
void UnitNorm(In<T> x, MatrixSpan<T> inverse, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("UnitNorm", x, inverse, y);
  CheckShape("UnitNorm", inverse, x.rows, 1);
  CheckShape("UnitNorm", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::UnitNorm(place, x, inverse, y);
  }
  ForRowRanges(x.rows, x.cols, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    UnitNormPart(x.Rows(begin, n), inverse.Rows(begin, n), y.Rows(begin, n));
  });
}

template <typename T>
void UnitNormGradient(In<T> g, In<T> y, In<T> inverse, MatrixSpan<T> dx) {
  const Place place = PlaceOf<T>("the gradient of UnitNorm", g, y, inverse, dx);
  CheckShape("UnitNormGradient", inverse, y.rows, 1);
  CheckShape("UnitNormGradient", g, y.rows, y.cols);
  CheckShape("UnitNormGradient", dx, y.rows, y.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::UnitNormGradient(place, g, y, inverse, dx);
  }
  ForRowRanges(y.rows, y.cols, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    UnitNormGradientPart(
        g.Rows(begin, n), y.Rows(begin, n), inverse.Rows(begin, n), dx.Rows(begin, n));
  });
}

#define NUMSIM_INSTANTIATE(T)                                                              \
  template void RmsNorm(In<T>, In<T>, double, MatrixSpan<T>, MatrixSpan<T>);               \
  template void RmsNormGradient(In<T>, In<T>, In<T>, In<T>, MatrixSpan<T>, MatrixSpan<T>); \
  template void LayerNorm(                                                                 \
      In<T>, In<T>, In<T>, double, MatrixSpan<T>, MatrixSpan<T>, MatrixSpan<T>);           \
  template void LayerNormGradient(                                                         \
      In<T>, In<T>, In<T>, In<T>, In<T>, MatrixSpan<T>, MatrixSpan<T>, MatrixSpan<T>);     \
  template void UnitNorm(In<T>, MatrixSpan<T>, MatrixSpan<T>);                             \
  template void UnitNormGradient(In<T>, In<T>, In<T>, MatrixSpan<T>);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
