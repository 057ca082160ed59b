#include "numsim/gemm/gemm_quantized.h"

#include "numsim/base/require.h"
#include "numsim/quantize/shared/require_scales.h"

namespace numsim {
namespace {

// Returns the scales of the vectors, which are the rows or the columns of the matrix, `inner` long.
// A segment that would cover a whole vector is given as 0.
GemmScales ScalesAlong(const QuantizedMatrix& matrix, bool columns, size_t inner) {
  const ScaleLayout layout = columns ? Transposed(matrix.layout) : matrix.layout;
  // Steps in the array of scales from one tile to the next: along a row of the matrix, and down it.
  const bool tiled = matrix.layout.block != 0;
  const size_t across = 1;
  const size_t down = tiled ? matrix.layout.BlocksPerRow(matrix.shape.cols) : 1;
  GemmScales scales;
  scales.data = matrix.scales;
  switch (layout.granularity) {
    case Granularity::kTensor:
      return scales;
    case Granularity::kRow:
      scales.row_stride = 1;
      return scales;
    case Granularity::kColumn:
      throw Error::Format(
          "AsOperand: the layout {} has one scale per element of the inner dimension when {} are the "
          "vectors; expected tensor, {}, block or tile",
          ToString(matrix.layout),
          columns ? "columns" : "rows",
          columns ? "column" : "row");
    case Granularity::kBlock:
    case Granularity::kTile:
      break;
  }
  if (layout.granularity == Granularity::kTile) scales.row_group = layout.tile_rows;
  scales.row_stride = columns ? across : down;
  scales.segment_stride = columns ? down : across;
  if (layout.block < inner) scales.segment = layout.block;
  return scales;
}

}  // namespace

GemmOperand AsOperand(const QuantizedMatrix& matrix, bool transposed) {
  RequireSize(matrix.codes8.size() + matrix.codes16.size(), matrix.shape, "AsOperand", "codes");
  RequireScales(matrix.scales.size(), matrix.layout, matrix.shape, "AsOperand", "scales");
  GemmOperand operand;
  operand.format = matrix.format;
  operand.codes8 = matrix.codes8;
  operand.codes16 = matrix.codes16;
  operand.rows = transposed ? matrix.shape.cols : matrix.shape.rows;
  operand.inner = transposed ? matrix.shape.rows : matrix.shape.cols;
  // In codes that are stored transposed, the matrix's columns are the rows.
  operand.transposed = transposed != matrix.transposed;
  operand.scales = ScalesAlong(matrix, transposed, operand.inner);
  return operand;
}

}  // namespace numsim
