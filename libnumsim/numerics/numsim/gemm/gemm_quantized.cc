#include "numsim/gemm/gemm_quantized.h"

#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/shared/require_scales.h"

namespace numsim {
namespace {

// Returns the operand of codes that are stored as the matrix, or as its transpose.
GemmOperand OperandOf(const QuantizedSpan& matrix, bool codes_transposed, bool transposed) {
  const auto width = static_cast<size_t>(matrix.format.StorageBytes());
  RequireSize(matrix.codes.Elements() / width, matrix.shape, "AsOperand", "codes");
  RequireScales(matrix.scales.Elements(), matrix.layout, matrix.shape, "AsOperand", "scales");
  GemmOperand operand;
  operand.format = matrix.format;
  const MatrixShape stored =
      codes_transposed ? MatrixShape{matrix.shape.cols, matrix.shape.rows} : matrix.shape;
  if (width == 1) {
    operand.codes8 = {matrix.codes.data, stored, matrix.codes.place};
  } else {
    operand.codes16 = {
        reinterpret_cast<const uint16_t*>(matrix.codes.data), stored, matrix.codes.place};
  }
  operand.rows = transposed ? matrix.shape.cols : matrix.shape.rows;
  operand.inner = transposed ? matrix.shape.rows : matrix.shape.cols;
  operand.transposed = codes_transposed != transposed;
  operand.scales = OperandScales(matrix.layout, matrix.shape, matrix.scales, transposed);
  operand.scales.tensor = matrix.tensor_scale;
  return operand;
}

}  // namespace

GemmScales OperandScales(const ScaleLayout& layout,
                         MatrixShape shape,
                         MatrixSpan<const float> data,
                         bool transposed) {
  const ScaleLayout along = transposed ? Transposed(layout) : layout;
  const size_t inner = transposed ? shape.rows : shape.cols;
  // Steps in the array of scales from one tile to the next: along a row of the matrix, and down it.
  const size_t across = 1;
  const size_t down = layout.block != 0 ? layout.BlocksPerRow(shape.cols) : 1;
  GemmScales scales;
  scales.data = data;
  switch (along.granularity) {
    case Granularity::kTensor:
      return scales;
    case Granularity::kRow:
      scales.row_stride = 1;
      return scales;
    case Granularity::kColumn:
      if (inner > 1) scales.segment = 1;
      scales.segment_stride = 1;
      return scales;
    case Granularity::kBlock:
    case Granularity::kTile:
      break;
  }
  if (along.granularity == Granularity::kTile) scales.row_group = along.tile_rows;
  scales.row_stride = transposed ? across : down;
  scales.segment_stride = transposed ? down : across;
  if (along.block < inner) scales.segment = along.block;
  return scales;
}

GemmOperand AsOperand(const QuantizedMatrix& matrix, bool transposed) {
  // Either order works; the one in which each vector is contiguous is preferred.
  const bool in_order = transposed ? !matrix.HasTransposed() : matrix.HasCodes();
  const auto codes = in_order ? matrix.codes.View() : matrix.transposed.View();
  return OperandOf({matrix.format,
                    matrix.shape,
                    matrix.layout,
                    codes,
                    matrix.scales.View(),
                    matrix.tensor_scale.View()},
                   !in_order,
                   transposed);
}

GemmOperand AsOperand(const QuantizedSpan& matrix, bool transposed) {
  return OperandOf(matrix, false, transposed);
}

GemmOperand AsOperand(ConstFloatSpan matrix, bool transposed) {
  GemmOperand operand;
  operand.format = matrix.element == Element::kBfloat16 ? kBf16 : kFp32;
  if (matrix.IsBf16Memory()) {
    operand.codes16 = matrix.Bf16();
  } else {
    operand.values = matrix.Float32();
  }
  operand.rows = transposed ? matrix.cols : matrix.rows;
  operand.inner = transposed ? matrix.rows : matrix.cols;
  operand.transposed = transposed;
  return operand;
}

}  // namespace numsim
