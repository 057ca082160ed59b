#include "numsim/backend/shared/launch_blocks_cuda.cuh"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/sequence_kernels.h"

namespace numsim::cuda {

void GatherRows(Place place, In<float> table, IndexRef ids, MatrixSpan<float> y) {
  GatherRowsBy(BlockLauncher{"gathering of rows", &place.Stream()}, table, ids, y);
}

void GatherRowsGradient(Place place, In<float> g, IndexRef ids, MatrixSpan<float> table_gradient) {
  GatherRowsGradientBy(
      BlockLauncher{"the gradient of a table", &place.Stream()}, g, ids, table_gradient);
}

void AddPositions(Place place, In<float> table, MatrixSpan<float> y) {
  AddPositionsBy(BlockLauncher{"positions", &place.Stream()}, table, y);
}

void AddPositionsGradient(Place place, In<float> g, MatrixSpan<float> table_gradient) {
  AddPositionsGradientBy(
      BlockLauncher{"the gradient of positions", &place.Stream()}, g, table_gradient);
}

void RotatePositions(Place place,
                     In<float> cosines,
                     In<float> sines,
                     size_t head_dim,
                     bool inverse,
                     MatrixSpan<float> x) {
  RotatePositionsBy(
      BlockLauncher{"rotary positions", &place.Stream()}, cosines, sines, head_dim, inverse, x);
}

void CutPatches(Place place,
                In<float> images,
                size_t height,
                size_t width,
                size_t channels,
                size_t patch,
                MatrixSpan<float> patches) {
  CutPatchesBy(
      BlockLauncher{"patches", &place.Stream()}, images, height, width, channels, patch, patches);
}

void PrependToken(Place place, In<float> x, size_t length, In<float> token, MatrixSpan<float> y) {
  PrependTokenBy(BlockLauncher{"a token of classes", &place.Stream()}, x, length, token, y);
}

void PrependTokenGradient(Place place,
                          In<float> g,
                          size_t length,
                          MatrixSpan<float> token_gradient,
                          MatrixSpan<float> dx) {
  PrependTokenGradientBy(BlockLauncher{"the gradient of a token of classes", &place.Stream()},
                         g,
                         length,
                         token_gradient,
                         dx);
}

void TakeRows(Place place, In<float> x, size_t length, IndexRef at, MatrixSpan<float> y) {
  TakeRowsBy(BlockLauncher{"taking of rows", &place.Stream()}, x, length, at, y);
}

void TakeRowsGradient(Place place, In<float> g, size_t length, IndexRef at, MatrixSpan<float> dx) {
  TakeRowsGradientBy(
      BlockLauncher{"the gradient of taken rows", &place.Stream()}, g, length, at, dx);
}

}  // namespace numsim::cuda
