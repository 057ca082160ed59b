#include "numsim/models/internal/gated_activation.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "numsim/base/parallel.h"
#include "numsim/ops/shared/activation.h"

namespace numsim {
namespace {

constexpr double kLimit = 7;  // of kClampedSwiglu
constexpr size_t kGrain = 16;

// Returns `absmax`, or 1 if nothing can be divided by it.
template <typename T>
T DivisorOf(T absmax) {
  return absmax > 0 && std::isfinite(absmax) ? absmax : T{1};
}

// Calls body(row) for each row, in parallel.
template <typename Body>
void ForRows(size_t rows, const Body& body) {
  ParallelFor(rows, kGrain, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) body(row);
  });
}

// Divides the linear branch of each token by its absolute maximum, which goes to `factors`.
template <typename T>
void SmoothTokens(In<T> x, MatrixSpan<T> smooth, std::span<T> factors) {
  const size_t n = x.cols / 2;
  ForRows(x.rows, [&](size_t row) {
    const T* from = x.Row(row);
    T* to = smooth.Row(row);
    T absmax = 0;
    for (size_t j = n; j < 2 * n; ++j) absmax = std::max(absmax, std::abs(from[j]));
    factors[row] = DivisorOf(absmax);
    std::copy_n(from, n, to);
    for (size_t j = n; j < 2 * n; ++j) to[j] = from[j] / factors[row];
  });
}

// The gate has no lower limit: swish is close to 0 there.
template <typename T>
bool IsClamped(T x, bool linear) {
  return x > T{kLimit} || (linear && x < -T{kLimit});
}

template <typename T>
void Clamp(In<T> x, MatrixSpan<T> clamped) {
  const size_t n = x.cols / 2;
  ForRows(x.rows, [&](size_t row) {
    const T* from = x.Row(row);
    for (size_t j = 0; j < 2 * n; ++j) {
      const bool over = IsClamped(from[j], j >= n);
      clamped.Row(row)[j] = over ? std::copysign(T{kLimit}, from[j]) : from[j];
    }
  });
}

constexpr size_t kColumns = 64;  // read together: whole cache lines of a row

// Multiplies each column by a power of two so that its largest element lies in [1, 2), if that
// power and its inverse are normal numbers. Writes the inverses.
void SmoothChannels(MatrixSpan<float> y, std::span<float> inverses) {
  ParallelFor((y.cols + kColumns - 1) / kColumns, 1, [&](size_t begin, size_t end) {
    for (size_t block = begin; block < end; ++block) {
      const size_t first = block * kColumns, count = std::min(kColumns, y.cols - first);
      float absmax[kColumns] = {}, factors[kColumns];
      for (size_t row = 0; row < y.rows; ++row) {
        const float* values = y.Row(row) + first;
        for (size_t j = 0; j < count; ++j) absmax[j] = std::max(absmax[j], std::abs(values[j]));
      }
      for (size_t j = 0; j < count; ++j) {
        const int exponent = std::clamp(std::ilogb(DivisorOf(absmax[j])), -126, 126);
        inverses[first + j] = std::ldexp(1.0f, exponent);
        factors[j] = std::ldexp(1.0f, -exponent);
      }
      for (size_t row = 0; row < y.rows; ++row) {
        float* values = y.Row(row) + first;
        for (size_t j = 0; j < count; ++j) values[j] *= factors[j];
      }
    }
  });
}

}  // namespace

template <typename T>
GatedActivation<T>::GatedActivation(MlpKind kind, Place place) : kind_(kind), inputs_(place) {}

template <typename T>
void GatedActivation<T>::Forward(In<T> x, MatrixSpan<T> y) {
  if (kind_ == MlpKind::kSwiglu) return Swiglu<T>(x, y);
  RequireHost("a SwiGLU that is smooth or clamped", {x.place, y.place});
  switch (kind_) {
    case MlpKind::kSmoothSwigluToken:
      tokens_.resize(x.rows);
      SmoothTokens<T>(x, inputs_.Resize(x.rows, x.cols), tokens_);
      return Swiglu<T>(inputs_.View(), y);
    case MlpKind::kClampedSwiglu:
      Clamp<T>(x, inputs_.Resize(x.rows, x.cols));
      return Swiglu<T>(inputs_.View(), y);
    default:
      break;
  }
  Swiglu<T>(x, y);
  if constexpr (std::is_same_v<T, float>) {
    channels_.resize(y.cols);
    SmoothChannels(y, channels_);
  }
}

template <typename T>
void GatedActivation<T>::Backward(In<T> g, In<T> x, MatrixSpan<T> dx) const {
  const size_t n = x.cols / 2;
  if (kind_ == MlpKind::kSmoothSwigluToken) {
    SwigluGradient<T>(g, inputs_.View(), dx);
    ForRows(dx.rows, [&](size_t row) {
      for (size_t j = n; j < 2 * n; ++j) dx.Row(row)[j] /= tokens_[row];
    });
  } else if (kind_ == MlpKind::kClampedSwiglu) {
    SwigluGradient<T>(g, inputs_.View(), dx);
    ForRows(dx.rows, [&](size_t row) {
      for (size_t j = 0; j < 2 * n; ++j) {
        if (IsClamped(x.Row(row)[j], j >= n)) dx.Row(row)[j] = 0;
      }
    });
  } else {
    SwigluGradient<T>(g, x, dx);
  }
}

template <typename T>
void ScaleRows(std::span<const T> factors, MatrixSpan<T> matrix) {
  if (factors.empty()) return;
  ForRows(matrix.rows, [&](size_t row) {
    for (size_t j = 0; j < matrix.cols; ++j) matrix.Row(row)[j] *= factors[row];
  });
}

template class GatedActivation<float>;
template class GatedActivation<double>;
template void ScaleRows(std::span<const float> factors, MatrixSpan<float> matrix);
template void ScaleRows(std::span<const double> factors, MatrixSpan<double> matrix);

}  // namespace numsim
