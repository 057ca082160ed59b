#include "numsim/io/array.h"

#include "numsim/base/error.h"

namespace numsim {

size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kU64:
      return 8;
    case ElementType::kF32:
    case ElementType::kU32:
      return 4;
    case ElementType::kF16:
    case ElementType::kBf16:
    case ElementType::kU16:
      return 2;
    case ElementType::kF8E4M3:
    case ElementType::kF8E5M2:
    case ElementType::kU8:
      return 1;
  }
  NUMSIM_CHECK(false, "element type {}", static_cast<int>(type));
  return 0;
}

std::string_view ToString(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return "float64";
    case ElementType::kF32:
      return "float32";
    case ElementType::kF16:
      return "float16";
    case ElementType::kBf16:
      return "bfloat16";
    case ElementType::kF8E4M3:
      return "e4m3fn";
    case ElementType::kF8E5M2:
      return "e5m2";
    case ElementType::kU8:
      return "uint8";
    case ElementType::kU16:
      return "uint16";
    case ElementType::kU32:
      return "uint32";
    case ElementType::kU64:
      return "uint64";
  }
  NUMSIM_CHECK(false, "element type {}", static_cast<int>(type));
  return "";
}

size_t Array::Elements() const {
  size_t elements = 1;
  for (const size_t extent : shape) elements *= extent;
  return elements;
}

}  // namespace numsim
