#include "apps/gemm_factor.h"

#include <fmt/format.h>

#include <algorithm>

#include "numsim/cast/cast.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {

GemmFactor::GemmFactor(const std::string& file, const Format& format, bool transposed)
    : file_(file), array_(ReadNpy(file)) {
  if (array_.shape.size() != 2) {
    throw Error::Format("{}: shape {}, expected a matrix", file, ShapeToString(array_.shape));
  }
  operand_.format = format.spec;
  operand_.transposed = transposed;
  operand_.rows = array_.shape[transposed ? 1 : 0];
  operand_.inner = array_.shape[transposed ? 0 : 1];
  TakeElements(format);
}

void GemmFactor::TakeElements(const Format& format) {
  const bool values = HoldsValues(array_, format, file_);
  const size_t n = array_.Elements();
  if (values) {
    CheckValues(std::span(array_.Data<float>(), n), format, file_);
  } else if (array_.type == ElementType::kU32) {  // Gemm() supports codes of up to 16 bits
    array_ = DecodedArray(array_, format, file_);
  } else {
    CheckCodes(array_, format, file_);
  }
  if (array_.type == ElementType::kF32) operand_.values = std::span(array_.Data<float>(), n);
  if (array_.type == ElementType::kU8) operand_.codes8 = std::span(array_.Data<uint8_t>(), n);
  if (array_.type == ElementType::kU16) operand_.codes16 = std::span(array_.Data<uint16_t>(), n);
}

void GemmFactor::ReadScales(const std::string& file, size_t segment) {
  const Array array = ReadNpy(file);
  scales_ = ToFloat32(array, file);
  operand_.scales.data = scales_;
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
                      file,
                      ShapeToString(array.shape),
                      Description(),
                      text,
                      segment == 0 ? ", or more columns with --segment" : "");
}

std::string GemmFactor::Description() const {
  return fmt::format("{} of shape {}{}",
                     file_,
                     ShapeToString(array_.shape),
                     operand_.transposed ? ", transposed" : "");
}

}  // namespace numsim::apps
