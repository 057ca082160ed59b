// Arrays as they lie in files: element type, shape, bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace numsim {

enum class ElementType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBf16,
  kF8E4M3,  // OCP e4m3fn
  kF8E5M2,
  kU8,
  kU16,
  kU32,
  kU64,
};

size_t ElementBytes(ElementType type);
std::string_view Name(ElementType type);  // float64, float32, float16, bfloat16, e4m3fn, …, uint64

// Elements in C order (last index fastest), native byte order.
struct Array {
  ElementType type = ElementType::kF32;
  std::vector<size_t> shape;  // empty: a scalar
  std::vector<std::byte> bytes;

  size_t Elements() const;  // product of shape, 1 for a scalar
  template <typename T>
  const T* Data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  template <typename T>
  T* Data() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

}  // namespace numsim
