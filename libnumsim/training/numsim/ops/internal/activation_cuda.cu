#include "numsim/backend/shared/launch_blocks_cuda.cuh"
#include "numsim/ops/internal/activation_kernels.h"
#include "numsim/ops/internal/ops_device.h"

namespace numsim::cuda {

void Gelu(Place place, In<float> x, MatrixSpan<float> y) {
  GeluBy(BlockLauncher{"GELU", &place.Stream()}, x, y);
}

void GeluGradient(Place place, In<float> g, In<float> x, MatrixSpan<float> dx) {
  GeluGradientBy(BlockLauncher{"the gradient of GELU", &place.Stream()}, g, x, dx);
}

void Relu(Place place, In<float> x, MatrixSpan<float> y) {
  ReluBy(BlockLauncher{"ReLU", &place.Stream()}, x, y);
}

void ReluGradient(Place place, In<float> g, In<float> x, MatrixSpan<float> dx) {
  ReluGradientBy(BlockLauncher{"the gradient of ReLU", &place.Stream()}, g, x, dx);
}

void Swiglu(Place place, In<float> x, MatrixSpan<float> y) {
  SwigluBy(BlockLauncher{"SwiGLU", &place.Stream()}, x, y);
}

void SwigluGradient(Place place, In<float> g, In<float> x, MatrixSpan<float> dx) {
  SwigluGradientBy(BlockLauncher{"the gradient of SwiGLU", &place.Stream()}, g, x, dx);
}

}  // namespace numsim::cuda
