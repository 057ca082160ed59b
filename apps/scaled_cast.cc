#include "apps/scaled_cast.h"

#include <algorithm>
#include <filesystem>

#include "apps/code_array.h"
#include "apps/tensor_argument.h"
#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/tensor_file.h"
#include "numsim/quantize/given_scales.h"
#include "numsim/quantize/quantize_float64.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim::apps {
namespace {

// Makes room for the codes and scales of all matrices of a stack.
ScaledCodes Room(const Array& in, const MatrixStack& stack, const QuantizeOptions& options) {
  ScaledCodes result;
  result.format = options.format;
  result.layout = options.layout;
  result.codes = ArrayLike(in, CodeType(options.format));
  Array& scales = result.scales;
  scales.type = ElementType::kF32;
  if (options.layout.granularity != Granularity::kTensor) {
    scales.shape.assign(in.shape.begin(), in.shape.end() - 2);
    const std::vector<size_t> grid = ShapeOfScales(options.layout, stack.shape);
    scales.shape.insert(scales.shape.end(), grid.begin(), grid.end());
  }
  scales.bytes.resize(scales.Elements() * sizeof(float));
  if (TakesTensorMaximum(options.scale_rule)) {
    Array& tensors = result.tensor_scales;
    tensors.type = ElementType::kF32;
    if (options.layout.granularity != Granularity::kTensor) {
      tensors.shape.assign(in.shape.begin(), in.shape.end() - 2);
    }
    tensors.bytes.resize(tensors.Elements() * sizeof(float));
  }
  return result;
}

// Replaces the scales of a matrix by those of its groups without that of the tensor, which is
// returned.
float TakeTensorScale(const QuantizedMatrix& matrix, std::span<float> scales) {
  const std::vector<uint8_t> codes = GroupScaleCodes(matrix);
  for (size_t s = 0; s < scales.size(); ++s) scales[s] = Decode(kE4M3fn, codes[s]);
  return matrix.tensor_scale.Span()[0];
}

// Quantises each matrix of the stack.
template <typename Values>
ScaledCodes QuantizeStack(const Array& in,
                          const Values& values,
                          const MatrixStack& stack,
                          QuantizeOptions options,
                          bool tensor_apart) {
  ScaledCodes result = Room(in, stack, options);
  const size_t each = stack.shape.Elements();
  const size_t count = options.layout.Count(stack.shape.rows, stack.shape.cols);
  for (size_t i = 0; i < stack.matrices; ++i) {
    options.random.first_index = i * each;
    const QuantizedMatrix matrix =
        Quantize(HostMatrix(std::span(values).subspan(i * each, each), stack.shape), options);
    if (result.codes.type == ElementType::kU8) {
      std::ranges::copy(matrix.Codes8(), result.codes.Data<uint8_t>() + i * each);
    } else {
      std::ranges::copy(matrix.Codes16(), result.codes.Data<uint16_t>() + i * each);
    }
    std::ranges::copy(matrix.Scales(), result.scales.Data<float>() + i * count);
    if (!tensor_apart) continue;
    result.tensor_scales.Data<float>()[i] =
        TakeTensorScale(matrix, {result.scales.Data<float>() + i * count, count});
  }
  return result;
}

}  // namespace

void ScaleOptions::Check(const Format& format,
                         const std::string& in,
                         const std::string& codes_out) const {
  ParseScaleLayout(granularity);
  if (!tensor_out.empty()) {
    if (!TakesTensorMaximum(ParseScaleRule(rule))) {
      throw Error::Format("--tensor-scale-out: the rule {} has no scale of the tensor", rule);
    }
    CheckTensorOutput("--tensor-scale-out", tensor_out);
    if (SameFile(tensor_out, out) || SameFile(tensor_out, codes_out)) {
      throw Error("--tensor-scale-out: expected a file of its own");
    }
    CheckKeepsInputs("--tensor-scale-out", tensor_out, {ParseTensorArgument(in).file});
  }
  const ScaleRule parsed = ParseScaleRule(rule);
  if (DependsOnRow(parsed)) {
    throw Error::Format("--scale: the rule {} is for linear layers, linear.scale_rule", rule);
  }
  if (format.spec.Bits() > 16) {
    throw Error::Format("--scales-out: {} has {} bits, but scales are for formats of up to 16 bits",
                        format.name,
                        format.spec.Bits());
  }
  CheckTensorOutput("--scales-out", out);
  if (SameFile(out, codes_out) && !IsSafetensorsName(out)) {
    throw Error("--scales-out and OUT are the same file, and only .safetensors holds both");
  }
  CheckKeepsInputs("--scales-out", out, {ParseTensorArgument(in).file});
}

CLI::Option* AddScaleOptions(CLI::App* sub, ScaleOptions& options) {
  CLI::Option* const out =
      sub->add_option(
             "--scales-out",
             options.out,
             "Scale before rounding, and write the scales to this .npy or .safetensors file "
             "(which may be OUT; their name is NAME_scale): float32, one number (tensor), "
             "rows x 1, 1 x columns or a grid of blocks, for each matrix of the last two "
             "dimensions. `numsim gemm` and `numsim dequantize` read them. A code stands for "
             "its value times its scale. The default of --overflow is then saturate")
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
         "pow2-ceil, e8m0, e8m0-even, e8m0-ulp, e8m0-three-eighths, e8m0-ceil, e4m3, none, "
         "4over6-mae, 4over6-mse, nvfp4-inverse, or nvfp4 (with --granularity block:16 and "
         "--format e2m1fn: NVFP4; the scales that are written include that of the tensor)")
      ->needs(out)
      ->capture_default_str();
  sub->add_option("--tensor-scale-out",
                  options.tensor_out,
                  "Under nvfp4, write the scale of the tensor to this .npy or .safetensors file "
                  "(its name is NAME_scale_2); --scales-out then has those of the groups alone, "
                  "numbers of e4m3fn. `numsim gemm --tensor-scale-a` reads it (default: the scales "
                  "include it)")
      ->needs(out)
      ->check(NotEmpty());
  sub->add_flag(
         "--divide",
         options.divide,
         "Round elements divided by their scale, instead of elements times the inverse scale")
      ->needs(out);
  sub->add_flag(
         "--nan-scales",
         options.nan_scales,
         "A NaN makes the scale that it shares NaN, and so all elements that share it (default: "
         "scales follow from the finite elements)")
      ->needs(out);
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
  quantize.divide = options.divide;
  quantize.nan_scales = options.nan_scales;
  const bool tensor = quantize.layout.granularity == Granularity::kTensor;
  if (!tensor && in.shape.size() < 2) {
    throw Error::Format("{}: shape {}, but --granularity {} needs a matrix",
                        file,
                        ShapeToString(in.shape),
                        options.granularity);
  }
  const MatrixStack stack = tensor ? FirstDimensionAsRows(in.shape) : StackOf(in.shape);
  try {
    if (in.type == ElementType::kF64) {
      return QuantizeStack(in, ToFloat64(in, file), stack, quantize, !options.tensor_out.empty());
    }
    return QuantizeStack(in, ToFloat32(in, file), stack, quantize, !options.tensor_out.empty());
  } catch (const ScaleError& error) {
    throw Error::Format("{}: {}", file, error.what());
  }
}

void WriteScaledCodes(const ScaledCodes& matrix,
                      const std::string& name,
                      const std::string& codes_out,
                      const ScaleOptions& options) {
  const std::string& scales_out = options.out;
  if (!options.tensor_out.empty()) {
    WriteTensor(options.tensor_out, {name + "_scale_2", matrix.tensor_scales});
  }
  const NamedArray codes = {name, StoredCodes(codes_out, matrix.codes, matrix.format)};
  const NamedArray scales = {name + "_scale", matrix.scales};
  Metadata metadata = CodeMetadata(codes, matrix.format);
  metadata.emplace_back(GranularityKey(name), ToString(matrix.layout));
  AtomicFile codes_file(codes_out);
  if (SameFile(codes_out, scales_out)) {
    AppendTensors(codes_out, std::vector<NamedArray>{codes, scales}, metadata, codes_file);
    codes_file.Commit();
    return;
  }
  AtomicFile scales_file(scales_out);
  AppendTensors(scales_out, std::span(&scales, 1), {}, scales_file);
  AppendTensors(codes_out, std::span(&codes, 1), metadata, codes_file);
  codes_file.Commit();
  scales_file.Commit();
}

}  // namespace numsim::apps
