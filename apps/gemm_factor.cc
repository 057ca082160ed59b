#include "apps/gemm_factor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/tensor_argument.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/io/array.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {
namespace {

// Returns the quantised tensor that the argument names, if it names one with scales in its file.
std::optional<GivenTensor> FindGiven(const GemmFactorOptions& options) {
  const TensorArgument argument = ParseTensorArgument(options.matrix);
  if (!IsSafetensorsName(argument.file) || !options.scales.empty()) return std::nullopt;
  const TensorFile file(argument.file);
  const std::vector<GivenNames> given = FindGivenTensors(file);
  for (const GivenNames& names : given) {
    const bool only = argument.tensor.empty() && given.size() == 1;
    if (only || names.name == argument.tensor || names.codes == argument.tensor) {
      return ReadGivenTensor(file, names, {options.format, options.granularity});
    }
  }
  return std::nullopt;
}

}  // namespace

GemmFactor::GemmFactor(const GemmFactorOptions& options, const char* option) : options_(options) {
  std::optional<GivenTensor> given = FindGiven(options);
  if (given) {
    format_ = given->format;
    array_ = std::move(given->codes);
  } else {
    array_ = ReadTensor(options.matrix).second;
    const std::string_view own = FormatOf(array_.type);
    if (options.format.empty() && own.empty()) {
      throw Error::Format("{}: {} elements do not tell their format; {} is missing",
                          options.matrix,
                          ToString(array_.type),
                          option);
    }
    format_ = ParseFormat(options.format.empty() ? own : std::string_view(options.format));
  }
  if (array_.shape.size() != 2) {
    throw Error::Format(
        "{}: shape {}, expected a matrix", options.matrix, ShapeToString(array_.shape));
  }
  operand_.format = format_.spec;
  operand_.transposed = options.transposed;
  operand_.rows = array_.shape[options.transposed ? 1 : 0];
  operand_.inner = array_.shape[options.transposed ? 0 : 1];
  TakeElements();
  if (given) TakeGiven(std::move(*given));
}

// Takes the scales of a tensor whose codes are taken.
void GemmFactor::TakeGiven(GivenTensor tensor) {
  scales_ = std::move(tensor.scales);
  found_scales_ = fmt::format("{}: scales {} per {}\n",
                              options_.matrix,
                              tensor.scales_name,
                              ToString(tensor.placement.layout));
  TakeScales(tensor.placement.layout);
}

void GemmFactor::TakeElements() {
  const bool values = HoldsValues(array_, format_, options_.matrix);
  const size_t n = array_.Elements();
  if (values) {
    CheckValues(std::span(array_.Data<float>(), n), format_, options_.matrix);
  } else if (array_.type == ElementType::kU32) {  // Gemm() supports codes of up to 16 bits
    array_ = DecodedArray(array_, format_, options_.matrix);
  } else {
    CheckCodes(array_, format_, options_.matrix);
  }
  if (array_.type == ElementType::kF32) operand_.values = std::span(array_.Data<float>(), n);
  if (array_.type == ElementType::kU8) operand_.codes8 = std::span(array_.Data<uint8_t>(), n);
  if (array_.type == ElementType::kU16) operand_.codes16 = std::span(array_.Data<uint16_t>(), n);
}

void GemmFactor::TakeScales(const ScaleLayout& layout) {
  const MatrixShape stored = {array_.shape[0], array_.shape[1]};
  operand_.scales = OperandScales(layout, stored, scales_, operand_.transposed);
}

void GemmFactor::ReadScales(size_t segment) {
  if (!options_.scales.empty()) PlaceGivenScales(segment);
  if (!options_.tensor_scale.empty()) TakeTensorScale();
}

void GemmFactor::TakeTensorScale() {
  const Array array = ReadTensor(options_.tensor_scale).second;
  const std::vector<float> numbers = ScalesOf(array, options_.tensor_scale);
  if (numbers.size() != 1 || !(numbers[0] > 0) || !std::isfinite(numbers[0])) {
    throw Error::Format("{}: shape {}, expected one positive number, the scale of the tensor",
                        options_.tensor_scale,
                        ShapeToString(array.shape));
  }
  if (scales_.empty()) {
    throw Error::Format("{}: the scale of a tensor without scales of its groups",
                        options_.tensor_scale);
  }
  tensor_scale_ = numbers[0];
  for (float& scale : scales_) scale *= tensor_scale_;
  operand_.scales.tensor = std::span<const float>(&tensor_scale_, 1);
}

void GemmFactor::PlaceGivenScales(size_t segment) {
  const Array array = ReadTensor(options_.scales).second;
  scales_ = ScalesOf(array, options_.scales);
  operand_.scales.data = scales_;
  if (!options_.granularity.empty()) {
    const ScaleLayout layout = ParseScaleLayout(options_.granularity);
    try {
      PlaceScales(array_.shape, array.shape, layout);
    } catch (const Error& error) {
      throw Error::Format("{}: {}", options_.scales, error.what());
    }
    return TakeScales(layout);
  }
  if (array.shape.empty() || array.shape == std::vector<size_t>{1}) return;
  const size_t whole = std::max<size_t>(inner(), 1);
  const size_t step = segment == 0 ? whole : segment;
  const size_t segments = whole / step + (whole % step != 0 ? 1 : 0);
  operand_.scales.row_stride = 1;
  const std::vector<size_t> stored =  // as `numsim cast` writes one scale per row
      operand_.transposed ? std::vector<size_t>{1, rows()} : std::vector<size_t>{rows(), 1};
  if (array.shape == std::vector<size_t>{rows()} || array.shape == stored) return;
  if (array.shape == std::vector<size_t>{rows(), segments}) {
    operand_.scales.row_stride = segments;
    operand_.scales.segment = segment;
    operand_.scales.segment_stride = 1;
    return;
  }
  std::vector<std::vector<size_t>> shapes = {{}, {rows()}, stored, {rows(), segments}};
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  std::string text;
  for (size_t i = 0; i < shapes.size(); ++i) {
    text += i == 0 ? "" : i + 1 == shapes.size() ? " or " : ", ";
    text += ShapeToString(shapes[i]);
  }
  throw Error::Format("{}: shape {}, but scales of {} have shape {}{}",
                      options_.scales,
                      ShapeToString(array.shape),
                      Description(),
                      text,
                      segment == 0
                          ? ", or another one with --granularity-a or --granularity-b, or more "
                            "columns with --segment"
                          : "");
}

std::string GemmFactor::Description() const {
  return fmt::format("{} of shape {}{}",
                     options_.matrix,
                     ShapeToString(array_.shape),
                     operand_.transposed ? ", transposed" : "");
}

}  // namespace numsim::apps
