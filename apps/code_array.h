// Arrays of a format's numbers in .npy files: codes, as `numsim cast` writes them, or values.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/array.h"
#include "numsim/quantize/quantize.h"

namespace numsim::apps {

// The smallest of uint8, uint16 and uint32 that holds the format's codes.
ElementType CodeType(const FormatSpec& format);

// An array of that element type and the shape of `other`; the elements are zero.
Array ArrayLike(const Array& other, ElementType type);

// Calls work(span of codes) with the element type of the array, one of CodeType's.
template <typename Work>
void WithCodes(Array& codes, Work work) {
  const size_t n = codes.Elements();
  switch (codes.type) {
    case ElementType::kU8:
      return work(std::span(codes.Data<uint8_t>(), n));
    case ElementType::kU16:
      return work(std::span(codes.Data<uint16_t>(), n));
    default:
      NUMSIM_CHECK(codes.type == ElementType::kU32, "{}", ToString(codes.type));
      return work(std::span(codes.Data<uint32_t>(), n));
  }
}

// Throws Error that names `file` and the first element beyond the format's bits.
// Requires codes of CodeType(format).
void CheckCodes(Array& codes, const Format& format, const std::string& file);

// The values of the codes as float32. Throws Error like CheckCodes.
Array DecodedArray(Array& codes, const Format& format, const std::string& file);

// Whether the elements are values of the format in float32, and not codes of CodeType(format).
// Throws Error that names `file` when they are of neither type.
bool HoldsValues(const Array& array, const Format& format, const std::string& file);

// Throws Error that names `file` and the first element that is no value of the format: one that
// rounding changes. `hint` goes behind it.
void CheckValues(std::span<const float> values,
                 const Format& format,
                 const std::string& file,
                 const std::string& hint = "");

// An array as a matrix: the first dimension gives the rows; one row where there is one dimension
// or none.
MatrixShape AsMatrix(const std::vector<size_t>& shape);

}  // namespace numsim::apps
