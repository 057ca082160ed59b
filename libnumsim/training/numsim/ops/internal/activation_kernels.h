// The operations of activation.h by kernels. row_kernels.h says what `launch` is.
#pragma once

#include "numsim/ops/internal/row_kernels.h"

namespace numsim {

template <class Launch>
void GeluBy(const Launch& launch, In<float> x, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, GeluRule{x, y});
}
template <class Launch>
void GeluGradientBy(const Launch& launch, In<float> g, In<float> x, MatrixSpan<float> dx) {
  LaunchPieces(launch, dx.rows, dx.cols, GeluGradientRule{g, x, dx});
}
template <class Launch>
void ReluBy(const Launch& launch, In<float> x, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, ReluRule{x, y});
}
template <class Launch>
void ReluGradientBy(const Launch& launch, In<float> g, In<float> x, MatrixSpan<float> dx) {
  LaunchPieces(launch, dx.rows, dx.cols, ReluGradientRule{g, x, dx});
}
template <class Launch>
void SwigluBy(const Launch& launch, In<float> x, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, SwigluRule{x, y.cols, y});
}
template <class Launch>
void SwigluGradientBy(const Launch& launch, In<float> g, In<float> x, MatrixSpan<float> dx) {
  LaunchPieces(launch, g.rows, g.cols, SwigluGradientRule{g, x, g.cols, dx});
}

}  // namespace numsim
