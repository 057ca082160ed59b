// Arrays of a format's numbers in files: codes as written by `numsim cast`, or float32 values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/array.h"
#include "numsim/quantize/quantize.h"

namespace numsim::apps {

// Returns the smallest of uint8, uint16 and uint32 that holds the format's codes.
ElementType CodeType(const FormatSpec& format);

// Returns the type of elements that are numbers of the format: kF8E4M3 for e4m3fn; nullopt if there
// is none.
std::optional<ElementType> TypeOfFormat(const FormatSpec& format);

// Returns whether the type holds codes of a format that it does not name: unsigned integers of up to
// 32 bits and raw bytes.
bool CanHoldCodes(ElementType type);

// Returns whether elements of this type can be codes of the format: unsigned integers and raw bytes
// of the size of CodeType(format), or the type that the format has itself.
bool CanBeCodes(ElementType type, const FormatSpec& format);

// Makes an array of such elements one of CodeType(format), with the same bits. Throws Error that
// names `file` for other elements.
void TakeAsCodes(Array& array, const Format& format, const std::string& file);

// Returns an array of zeros with the given element type and the shape of `other`.
Array ArrayLike(const Array& other, ElementType type);

// Calls work(span of codes) with the element type of the array. Requires uint8, uint16 or uint32.
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

// Throws Error that names `file` and the first element with bits above the format's width, if there
// is one. Requires codes of CodeType(format).
void CheckCodes(Array& codes, const Format& format, const std::string& file);

// Returns the values of the codes as float32. Throws Error like CheckCodes().
Array DecodedArray(Array& codes, const Format& format, const std::string& file);

// Returns true if the elements are float32 values, or become them because they are float64 or
// integers that float32 holds; false if they are codes of the format, which become those of
// TakeAsCodes(). Throws Error that names `file` if they have another type.
bool HoldsValues(Array& array, const Format& format, const std::string& file);

// Throws Error that names `file` and the first element that is not a value of the format (one that
// rounding changes), if there is one. Appends `hint` to the message.
void CheckValues(std::span<const float> values,
                 const Format& format,
                 const std::string& file,
                 const std::string& hint = "");

}  // namespace numsim::apps
