#include "numsim/gemm/gemm_quantized.h"

#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
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
  scales.data = {matrix.scales.View().data, matrix.scales.View().Elements()};
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
  const auto width = static_cast<size_t>(matrix.format.StorageBytes());
  // Either order works; the one in which each vector is contiguous is preferred.
  const bool in_order = transposed ? !matrix.HasTransposed() : matrix.HasCodes();
  const auto codes = in_order ? matrix.codes.View() : matrix.transposed.View();
  RequireSize(codes.Elements() / width, matrix.shape, "AsOperand", "codes");
  RequireScales(
      matrix.scales.View().Elements(), matrix.layout, matrix.shape, "AsOperand", "scales");
  GemmOperand operand;
  operand.format = matrix.format;
  if (width == 1) {
    operand.codes8 = {codes.data, codes.Elements()};
  } else {
    operand.codes16 = {reinterpret_cast<const uint16_t*>(codes.data), codes.Elements() / width};
  }
  operand.rows = transposed ? matrix.shape.cols : matrix.shape.rows;
  operand.inner = transposed ? matrix.shape.rows : matrix.shape.cols;
  operand.transposed = in_order == transposed;
  operand.scales = ScalesAlong(matrix, transposed, operand.inner);
  operand.place = matrix.place();
  return operand;
}

GemmOperand AsOperand(In<float> matrix, bool transposed) {
  NUMSIM_REQUIRE(
      matrix.Contiguous(), "AsOperand: stride {}, expected {}", matrix.stride, matrix.cols);
  GemmOperand operand;
  if (matrix.element == Element::kBfloat16) {
    operand.format = kBf16;
    operand.codes16 = {reinterpret_cast<const uint16_t*>(matrix.data), matrix.Elements()};
  } else {
    operand.format = kFp32;
    operand.values = {matrix.data, matrix.Elements()};
  }
  operand.rows = transposed ? matrix.cols : matrix.rows;
  operand.inner = transposed ? matrix.rows : matrix.cols;
  operand.transposed = transposed;
  operand.place = matrix.place;
  return operand;
}

}  // namespace numsim
