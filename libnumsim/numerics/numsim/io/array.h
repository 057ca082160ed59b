// Arrays as stored in files: element type, shape and bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// The types of elements in files. Types with a format (FormatOf) and kF64 hold numbers; kU8 to kU32 and
// raw bytes hold codes of a format that the file does not name; wider integers and kBool hold neither.
enum class ElementType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBf16,
  kF8E4M3,  // OCP e4m3fn
  kF8E5M2,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kF8E8M0,
  kF6E2M3,  // OCP's formats of 6 and 4 bits
  kF6E3M2,
  kF4E2M1,
  kI8,
  kU8,
  kU16,
  kU32,
  kU64,
  kI16,
  kI32,
  kI64,
  kBool,
  kRaw8,  // bytes of a type that NumPy does not know, such as a format of ml_dtypes
  kRaw16,
};

// Returns the number of bytes of an element in memory. A format of less than 8 bits has one code per
// byte there.
size_t ElementBytes(ElementType type);
// Returns the number of bits of an element in a file, where codes of 4 and 6 bits are packed.
size_t StoredBits(ElementType type);
// Returns float64, float32, float16, bfloat16, e4m3fn, ..., uint64; "raw bytes" for kRaw8.
std::string_view ToString(ElementType type);
// Returns the name of the format in formats/format_list.h whose numbers have this type: fp32, bf16,
// e4m3fn, int8, ... Empty for float64 and for types without a format.
std::string_view FormatOf(ElementType type);

// An array with elements in C order (last index fastest) and native byte order.
struct Array {
  ElementType type = ElementType::kF32;
  std::vector<size_t> shape = {};  // empty: a scalar
  std::vector<std::byte> bytes = {};

  size_t Elements() const;  // product of the extents; 1 for a scalar
  template <typename T>
  const T* Data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  // Returns the elements. Requires that T is the type of `type`.
  template <typename T>
  T* Data() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

// Shapes read from files: overflow-checked sizes, and text.

// Returns the number of elements of `shape` (1 for a scalar), or nullopt if elements times
// `element_bits` does not fit into 63 bits. The test ignores zero extents, so that every partial
// product of an accepted shape also fits.
std::optional<size_t> CheckedElements(std::span<const size_t> shape, size_t element_bits);

// Returns "(2, 3)", "(5,)" or "()", as NumPy writes shapes.
std::string ShapeToString(std::span<const size_t> shape);

// Byte order of elements in memory.

// Reverses the bytes of each element in place. Requires bytes.size() to be a multiple of
// `element_bytes` >= 1.
inline void ReverseBytesOfElements(std::span<std::byte> bytes, size_t element_bytes) {
  if (element_bytes == 1) return;
  for (size_t i = 0; i < bytes.size(); i += element_bytes) {
    std::reverse(bytes.begin() + i, bytes.begin() + i + element_bytes);
  }
}

}  // namespace numsim
