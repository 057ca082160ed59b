#include "numsim/gemm/gemm_quantized_device.h"

#include "numsim/base/require.h"

namespace numsim {

DeviceGemmOperand AsOperand(const DeviceQuantizedMatrix& matrix, bool columns) {
  const Granularity along = columns ? Granularity::kColumn : Granularity::kRow;
  NUMSIM_REQUIRE(
      matrix.layout.granularity == Granularity::kTensor || matrix.layout.granularity == along,
      "AsOperand: the layout {} when {} are the vectors, expected tensor or {}",
      ToString(matrix.layout),
      columns ? "columns" : "rows",
      columns ? "column" : "row");
  NUMSIM_REQUIRE(matrix.has_codes || matrix.has_transposed, "AsOperand: the matrix has no codes");
  // Either order works; the one in which each vector is contiguous is preferred.
  const bool in_order = columns ? !matrix.has_transposed : matrix.has_codes;
  DeviceGemmOperand operand;
  operand.format = matrix.format;
  operand.codes = in_order ? matrix.codes.data() : matrix.transposed.data();
  operand.rows = columns ? matrix.shape.cols : matrix.shape.rows;
  operand.inner = columns ? matrix.shape.rows : matrix.shape.cols;
  operand.transposed = in_order == columns;
  operand.scales = {matrix.scales.data(), matrix.ScaleCount()};
  return operand;
}

}  // namespace numsim
