#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/internal/overflow_threshold.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {
namespace {

// Returns the error measures of elements that share `scale`. Elements divided by their scale are
// compared with the threshold, so the limit for the elements themselves is threshold * scale.
ErrorMeasures MeasureRun(std::span<const float> in,
                         std::span<const float> out,
                         double threshold,
                         double scale) {
  // Under a scale of 0 elements underflow, and none overflows.
  if (scale == 0) return MeasureError(in, out, std::numeric_limits<double>::infinity());
  return MeasureError(in, out, threshold * scale);
}

ErrorMeasures MeasureUnderScales(std::span<const float> in,
                                 std::span<const float> out,
                                 MatrixShape shape,
                                 const FormatSpec& format,
                                 const ScaleLayout& layout,
                                 std::span<const float> scales) {
  const double threshold = OverflowThreshold(format);
  if (layout.granularity == Granularity::kTensor) {
    return MeasureRun(in, out, threshold, static_cast<double>(scales[0]));
  }
  ErrorMeasures total;
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t c = 0; c < shape.cols;) {
      size_t stop = shape.cols;
      if (layout.granularity == Granularity::kColumn) stop = c + 1;
      if (layout.block != 0) stop = c + std::min(stop - c, layout.block);
      const size_t at = r * shape.cols + c;
      const double scale = static_cast<double>(scales[layout.Index(r, c, shape.cols)]);
      total.Merge(
          MeasureRun(in.subspan(at, stop - c), out.subspan(at, stop - c), threshold, scale));
      c = stop;
    }
  }
  return total;
}

}  // namespace

ErrorMeasures QuantizationError(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options) {
  RequireSize(in.size(), shape, "QuantizationError", "in");
  std::vector<float> out(in.size());
  const std::vector<float> scales = FakeQuantize(in, shape, options, out);
  return MeasureUnderScales(in, out, shape, options.format, options.layout, scales);
}

ErrorMeasures QuantizationError(std::span<const float> in,
                                const QuantizedMatrix& matrix,
                                std::span<float> dequantized) {
  RequireSize(in.size(), matrix.shape, "QuantizationError", "in");
  Dequantize(matrix, dequantized);
  return MeasureUnderScales(
      in, dequantized, matrix.shape, matrix.format, matrix.layout, matrix.Scales());
}

ScaleRule UsualScaleRule(const FormatSpec& format) {
  return format.Bits() <= 8 ? ScaleRule::kAbsmax : ScaleRule::kNone;
}

}  // namespace numsim
