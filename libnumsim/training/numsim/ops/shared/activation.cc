#include "numsim/ops/shared/activation.h"

#include <cmath>
#include <limits>

#include "numsim/base/elementary.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/pieces.h"

namespace numsim {
namespace {

constexpr double kRootTwoOverPi = 0.79788456080286535588;  // sqrt(2/pi)
constexpr double kCubic = 0.044715;
// Beyond this magnitude, GELU's derivative is 0 or 1 to the last bit of a float64.
constexpr double kGeluFlat = 30;

double Sigmoid(double x) {
  if (!(std::abs(x) < 700)) return x < 0 ? 0 : x > 0 ? 1 : x;
  return 1 / (1 + Exp(-x));
}

// (1 + tanh(u)) / 2 = sigmoid(2 u).
double GeluShare(double x) { return Sigmoid(2 * kRootTwoOverPi * (x + kCubic * x * x * x)); }
double GeluOf(double x) { return x * GeluShare(x); }
double GeluDerivative(double x) {
  if (std::abs(x) > kGeluFlat) return x > 0;
  const double s = GeluShare(x);
  return s + x * s * (1 - s) * 2 * kRootTwoOverPi * (1 + 3 * kCubic * x * x);
}

// The work of one thread, in float64; activation_simd.cc has the float32 versions.
using Matrix = MatrixSpan<double>;
using Input = MatrixSpan<const double>;

// y = f(x), and dx = g f'(x).
template <typename Function>
void Map(Input x, Matrix y, const Function& f) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) y.Row(r)[c] = f(x.Row(r)[c]);
  }
}
template <typename Function>
void MapGradient(Input g, Input x, Matrix dx, const Function& derivative) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) dx.Row(r)[c] = g.Row(r)[c] * derivative(x.Row(r)[c]);
  }
}

void GeluPart(Input x, Matrix y) { Map(x, y, GeluOf); }
void GeluGradientPart(Input g, Input x, Matrix dx) { MapGradient(g, x, dx, GeluDerivative); }
void ReluPart(Input x, Matrix y) {
  Map(x, y, [](double v) { return v < 0 ? 0 : v; });
}
void ReluGradientPart(Input g, Input x, Matrix dx) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) dx.Row(r)[c] = x.Row(r)[c] <= 0 ? 0 : g.Row(r)[c];
  }
}
void SwigluPart(Input x, Matrix y) {
  for (size_t r = 0; r < y.rows; ++r) {
    for (size_t c = 0; c < y.cols; ++c) {
      const double gate = x.Row(r)[c], linear = x.Row(r)[y.cols + c];
      y.Row(r)[c] = gate * Sigmoid(gate) * linear;
    }
  }
}
void SwigluGradientPart(Input g, Input x, Matrix dx) {
  for (size_t r = 0; r < g.rows; ++r) {
    for (size_t c = 0; c < g.cols; ++c) {
      const double gate = x.Row(r)[c], linear = x.Row(r)[g.cols + c], d = g.Row(r)[c];
      const double s = Sigmoid(gate), swish = gate * s;
      dx.Row(r)[c] = d * linear * (s + swish * (1 - s));
      dx.Row(r)[g.cols + c] = d * swish;
    }
  }
}

}  // namespace

template <typename T>
void Gelu(In<T> x, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("GELU", x, y);
  CheckShape("Gelu", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::Gelu(place, x, y);
  }
  ForElements([](In<T> a, MatrixSpan<T> b) { GeluPart(a, b); }, x, y);
}

template <typename T>
void GeluGradient(In<T> g, In<T> x, MatrixSpan<T> dx) {
  const Place place = PlaceOf<T>("the gradient of GELU", g, x, dx);
  CheckShape("GeluGradient", g, x.rows, x.cols);
  CheckShape("GeluGradient", dx, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::GeluGradient(place, g, x, dx);
  }
  ForElements([](In<T> a, In<T> b, MatrixSpan<T> c) { GeluGradientPart(a, b, c); }, g, x, dx);
}

template <typename T>
void Relu(In<T> x, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("ReLU", x, y);
  CheckShape("Relu", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::Relu(place, x, y);
  }
  ForElements([](In<T> a, MatrixSpan<T> b) { ReluPart(a, b); }, x, y);
}

template <typename T>
void ReluGradient(In<T> g, In<T> x, MatrixSpan<T> dx) {
  const Place place = PlaceOf<T>("the gradient of ReLU", g, x, dx);
  CheckShape("ReluGradient", g, x.rows, x.cols);
  CheckShape("ReluGradient", dx, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::ReluGradient(place, g, x, dx);
  }
  ForElements([](In<T> a, In<T> b, MatrixSpan<T> c) { ReluGradientPart(a, b, c); }, g, x, dx);
}

template <typename T>
void Swiglu(In<T> x, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("SwiGLU", x, y);
  CheckShape("Swiglu", x, y.rows, 2 * y.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::Swiglu(place, x, y);
  }
  ForRowRanges(y.rows, y.cols, [&](size_t begin, size_t end) {
    SwigluPart(x.Rows(begin, end - begin), y.Rows(begin, end - begin));
  });
}

template <typename T>
void SwigluGradient(In<T> g, In<T> x, MatrixSpan<T> dx) {
  const Place place = PlaceOf<T>("the gradient of SwiGLU", g, x, dx);
  CheckShape("SwigluGradient", x, g.rows, 2 * g.cols);
  CheckShape("SwigluGradient", dx, g.rows, 2 * g.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::SwigluGradient(place, g, x, dx);
  }
  ForRowRanges(g.rows, g.cols, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    SwigluGradientPart(g.Rows(begin, n), x.Rows(begin, n), dx.Rows(begin, n));
  });
}

#define NUMSIM_INSTANTIATE(T)                              \
  template void Gelu(In<T>, MatrixSpan<T>);                \
  template void GeluGradient(In<T>, In<T>, MatrixSpan<T>); \
  template void Relu(In<T>, MatrixSpan<T>);                \
  template void ReluGradient(In<T>, In<T>, MatrixSpan<T>); \
  template void Swiglu(In<T>, MatrixSpan<T>);              \
  template void SwigluGradient(In<T>, In<T>, MatrixSpan<T>);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
