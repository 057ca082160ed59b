#include "numsim/backend/shared/launch_blocks_cuda.cuh"
#include "numsim/ops/internal/elementwise_kernels.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_memory.h"

namespace numsim::cuda {

void Copy(Place place, In<float> x, MatrixSpan<float> y) {
  CopyBy(BlockLauncher{"copying", &place.Stream()}, x, y);
}

void CopyTransposed(Place place, In<float> x, MatrixSpan<float> y) {
  CopyTransposedBy(BlockLauncher{"transposing", &place.Stream()}, x, y);
}

void Fill(Place place, float value, MatrixSpan<float> y) {
  FillBy(BlockLauncher{"filling", &place.Stream()}, value, y);
}

void Add(Place place, In<float> a, In<float> b, MatrixSpan<float> y) {
  AddBy(BlockLauncher{"adding", &place.Stream()}, a, b, y);
}

void ScaleBy(Place place, float factor, MatrixSpan<float> y) {
  ScaleElementsBy(BlockLauncher{"scaling", &place.Stream()}, factor, y);
}

void AddBias(Place place, In<float> bias, MatrixSpan<float> y) {
  AddBiasBy(BlockLauncher{"adding a bias", &place.Stream()}, bias, y);
}

void ColumnSums(Place place, In<float> x, MatrixSpan<float> sums) {
  float* const block_sums = BlockSumsAt<1>(place, x.rows, {sums});
  ColumnSumsBy(BlockLauncher{"adding rows", &place.Stream()}, x, block_sums, sums);
}

void AddScaledBranch(
    Place place, In<float> x, In<float> branch, In<float> gain, MatrixSpan<float> y) {
  AddScaledBranchBy(BlockLauncher{"layer-scale", &place.Stream()}, x, branch, gain, y);
}

void AddScaledBranchGradient(Place place,
                             In<float> g,
                             In<float> branch,
                             In<float> gain,
                             MatrixSpan<float> branch_gradient,
                             MatrixSpan<float> gain_gradient) {
  float* const block_sums = BlockSumsAt<1>(place, g.rows, {gain_gradient});
  AddScaledBranchGradientBy(BlockLauncher{"the gradient of layer-scale", &place.Stream()},
                            g,
                            branch,
                            gain,
                            block_sums,
                            branch_gradient,
                            gain_gradient);
}

}  // namespace numsim::cuda
