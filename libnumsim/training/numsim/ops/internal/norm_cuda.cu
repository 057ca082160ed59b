#include "numsim/backend/shared/launch_blocks_cuda.cuh"
#include "numsim/ops/internal/norm_kernels.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_memory.h"

namespace numsim::cuda {

void RmsNorm(Place place,
             In<float> x,
             In<float> gain,
             double epsilon,
             MatrixSpan<float> inverse,
             MatrixSpan<float> y) {
  RmsNormBy(BlockLauncher{"RMSNorm", &place.Stream()}, x, gain, epsilon, inverse, y);
}

void RmsNormGradient(Place place,
                     In<float> g,
                     In<float> x,
                     In<float> gain,
                     In<float> inverse,
                     MatrixSpan<float> gain_gradient,
                     MatrixSpan<float> dx) {
  float* const block_sums = BlockSumsAt<1>(place, x.rows, {gain_gradient});
  RmsNormGradientBy(BlockLauncher{"the gradient of RMSNorm", &place.Stream()},
                    g,
                    x,
                    gain,
                    inverse,
                    block_sums,
                    gain_gradient,
                    dx);
}

void LayerNorm(Place place,
               In<float> x,
               In<float> gain,
               In<float> bias,
               double epsilon,
               MatrixSpan<float> mean,
               MatrixSpan<float> inverse,
               MatrixSpan<float> y) {
  LayerNormBy(
      BlockLauncher{"LayerNorm", &place.Stream()}, x, gain, bias, epsilon, mean, inverse, y);
}

void LayerNormGradient(Place place,
                       In<float> g,
                       In<float> x,
                       In<float> gain,
                       In<float> mean,
                       In<float> inverse,
                       MatrixSpan<float> gain_gradient,
                       MatrixSpan<float> bias_gradient,
                       MatrixSpan<float> dx) {
  float* const block_sums = BlockSumsAt<2>(place, x.rows, {gain_gradient, bias_gradient});
  LayerNormGradientBy(BlockLauncher{"the gradient of LayerNorm", &place.Stream()},
                      g,
                      x,
                      gain,
                      mean,
                      inverse,
                      block_sums,
                      gain_gradient,
                      bias_gradient,
                      dx);
}

void UnitNorm(Place place, In<float> x, MatrixSpan<float> inverse, MatrixSpan<float> y) {
  UnitNormBy(BlockLauncher{"UnitNorm", &place.Stream()}, x, inverse, y);
}

void UnitNormGradient(
    Place place, In<float> g, In<float> y, In<float> inverse, MatrixSpan<float> dx) {
  UnitNormGradientBy(BlockLauncher{"the gradient of UnitNorm", &place.Stream()}, g, y, inverse, dx);
}

}  // namespace numsim::cuda
