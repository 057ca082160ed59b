#include "numsim/scaling/quantized_matrix.h"

#include "numsim/base/error.h"

namespace numsim {
namespace {

struct Scales {
  std::vector<float> scales;
  std::vector<float> multipliers;
};

Scales MakeScales(std::span<const float> in, MatrixShape shape, const QuantizeOptions& options) {
  Scales result;
  result.scales.resize(options.layout.Count(shape.rows, shape.cols));
  Absmax(in, shape, options.layout, result.scales);
  result.multipliers.reserve(result.scales.size());
  for (float& scale : result.scales) {
    const Scale made = MakeScale(options.format, scale, options.scale_rule);
    scale = made.scale;
    result.multipliers.push_back(made.multiplier);
  }
  return result;
}

}  // namespace

QuantizedMatrix Quantize(std::span<const float> in,
                         MatrixShape shape,
                         const QuantizeOptions& options) {
  NUMSIM_CHECK(options.format.Bits() <= 16, "a format of {} bits", options.format.Bits());
  QuantizedMatrix result;
  result.format = options.format;
  result.shape = shape;
  result.layout = options.layout;
  result.transposed = options.transpose;
  Scales scales = MakeScales(in, shape, options);
  const EncodePlan plan = MakeEncodePlan(options.format, options.rounding, options.overflow);
  const auto fill = [&](auto& codes) {
    codes.resize(in.size());
    Quantize(plan,
             in,
             shape,
             options.layout,
             scales.multipliers,
             std::span(codes),
             options.random,
             options.transpose);
  };
  if (options.format.StorageBytes() == 1) {
    fill(result.codes8);
  } else {
    fill(result.codes16);
  }
  result.scales = std::move(scales.scales);
  return result;
}

void Dequantize(const QuantizedMatrix& matrix, std::span<float> out) {
  NUMSIM_CHECK(!matrix.transposed, "a transposed matrix");
  if (matrix.format.StorageBytes() == 1) {
    Dequantize(
        matrix.format, std::span(matrix.codes8), matrix.shape, matrix.layout, matrix.scales, out);
  } else {
    Dequantize(
        matrix.format, std::span(matrix.codes16), matrix.shape, matrix.layout, matrix.scales, out);
  }
}

std::vector<float> FakeQuantize(std::span<const float> in,
                                MatrixShape shape,
                                const QuantizeOptions& options,
                                std::span<float> out) {
  Scales scales = MakeScales(in, shape, options);
  FakeQuantize(MakeEncodePlan(options.format, options.rounding, options.overflow),
               in,
               shape,
               options.layout,
               scales.multipliers,
               scales.scales,
               out,
               options.random);
  return std::move(scales.scales);
}

}  // namespace numsim
