#include "apps/scaled_cast.h"

#include <algorithm>
#include <filesystem>

#include "apps/code_array.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/npy.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {
namespace {

std::vector<size_t> ShapeOfScales(const ScaleLayout& layout, MatrixShape shape) {
  switch (layout.granularity) {
    case Granularity::kTensor:
      return {};
    case Granularity::kRow:
      return {shape.rows, 1};
    case Granularity::kColumn:
      return {1, shape.cols};
    case Granularity::kBlock:
      return {shape.rows, layout.BlocksPerRow(shape.cols)};
    case Granularity::kTile:
      return {layout.TileBands(shape.rows), layout.BlocksPerRow(shape.cols)};
  }
  return {};
}

// Copies the codes and scales of a matrix to arrays of files.
ScaledCodes AsArrays(const QuantizedMatrix& matrix, const Array& in) {
  ScaledCodes result;
  result.codes = ArrayLike(in, CodeType(matrix.format));
  if (result.codes.type == ElementType::kU8) {
    std::ranges::copy(matrix.Codes8(), result.codes.Data<uint8_t>());
  } else {
    std::ranges::copy(matrix.Codes16(), result.codes.Data<uint16_t>());
  }
  result.scales.type = ElementType::kF32;
  result.scales.shape = ShapeOfScales(matrix.layout, matrix.shape);
  result.scales.bytes.resize(matrix.Scales().size_bytes());
  std::ranges::copy(matrix.Scales(), result.scales.Data<float>());
  return result;
}

}  // namespace

void ScaleOptions::Check(const Format& format,
                         const std::string& in,
                         const std::string& codes_out) const {
  ParseScaleLayout(granularity);
  ParseScaleRule(rule);
  if (format.spec.Bits() > 16) {
    throw Error::Format("--scales-out: {} has {} bits, but scales are for formats of up to 16 bits",
                        format.name,
                        format.spec.Bits());
  }
  if (SameFile(out, codes_out)) throw Error("--scales-out and OUT are the same file");
  CheckKeepsInputs("--scales-out", out, {in});
}

CLI::Option* AddScaleOptions(CLI::App* sub, ScaleOptions& options) {
  CLI::Option* const out =
      sub->add_option("--scales-out",
                      options.out,
                      "Scale before rounding, and write the scales to this .npy file: float32, one "
                      "number (tensor), rows x 1, 1 x columns or rows x blocks; `numsim gemm "
                      "--scale-a` and `--scale-b` read them. A code stands for its value times its "
                      "scale. The default of --overflow is then saturate")
          ->check(NotEmpty());
  sub->add_option("--granularity",
                  options.granularity,
                  "Elements that share a scale: tensor, row, column, block:N (N elements of a row) "
                  "or tile:ROWSxCOLS")
      ->needs(out)
      ->capture_default_str();
  sub->add_option(
         "--scale",
         options.rule,
         "Rule that computes a scale from the largest magnitude: absmax, pow2-floor, "
         "pow2-ceil, e8m0, none, or nvfp4 (with --granularity block:16 and --format e2m1fn: "
         "NVFP4; the scales that are written include that of the tensor)")
      ->needs(out)
      ->capture_default_str();
  return out;
}

ScaledCodes EncodeScaled(const ScaleOptions& options,
                         const RoundingOptions& rounding,
                         const Format& format,
                         const Array& in,
                         const std::string& file) {
  QuantizeOptions quantize;
  quantize.format = format.spec;
  quantize.rounding = rounding.ParsedRounding();
  quantize.overflow = rounding.ParsedOverflow();
  quantize.layout = ParseScaleLayout(options.granularity);
  quantize.scale_rule = ParseScaleRule(options.rule);
  quantize.random = {{rounding.seed, 0}, 0};
  if (quantize.layout.granularity != Granularity::kTensor && in.shape.size() != 2) {
    throw Error::Format("{}: shape {}, but --granularity {} needs a matrix",
                        file,
                        ShapeToString(in.shape),
                        options.granularity);
  }
  const auto quantized = [&](const auto& values) {
    return AsArrays(Quantize(std::span(values), AsMatrix(in.shape), quantize), in);
  };
  try {
    if (in.type == ElementType::kF64) return quantized(ToFloat64(in, file));
    return quantized(ToFloat32(in, file));
  } catch (const ScaleError& error) {
    throw Error::Format("{}: {}", file, error.what());
  }
}

void WriteScaledCodes(const ScaledCodes& matrix,
                      const std::string& codes_out,
                      const std::string& scales_out) {
  AtomicFile scales(scales_out);
  AppendNpy(scales_out, matrix.scales, scales);
  WriteNpy(codes_out, matrix.codes);
  scales.Commit();
}

}  // namespace numsim::apps
