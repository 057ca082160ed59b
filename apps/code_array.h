// Arrays of codes, as `numsim cast` writes them to .npy files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/array.h"

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
      NUMSIM_CHECK(codes.type == ElementType::kU32, "{}", Name(codes.type));
      return work(std::span(codes.Data<uint32_t>(), n));
  }
}

// Throws Error that names `file` and the first element beyond the format's bits.
// Requires codes of CodeType(format).
void CheckCodes(Array& codes, const Format& format, const std::string& file);

// The values of the codes as float32. Throws Error like CheckCodes.
Array DecodedArray(Array& codes, const Format& format, const std::string& file);

}  // namespace numsim::apps
