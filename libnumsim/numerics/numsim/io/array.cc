#include "numsim/io/array.h"

#include <array>

#include "numsim/base/error.h"

namespace numsim {
namespace {

struct TypeRow {
  ElementType type;
  std::string_view name;
  size_t bytes;        // in memory
  size_t stored_bits;  // in a file
  std::string_view format;
};
constexpr std::array kTypes = {
    TypeRow{ElementType::kF64, "float64", 8, 64, ""},
    TypeRow{ElementType::kF32, "float32", 4, 32, "fp32"},
    TypeRow{ElementType::kF16, "float16", 2, 16, "fp16"},
    TypeRow{ElementType::kBf16, "bfloat16", 2, 16, "bf16"},
    TypeRow{ElementType::kF8E4M3, "e4m3fn", 1, 8, "e4m3fn"},
    TypeRow{ElementType::kF8E5M2, "e5m2", 1, 8, "e5m2"},
    TypeRow{ElementType::kF8E4M3Fnuz, "e4m3fnuz", 1, 8, "e4m3fnuz"},
    TypeRow{ElementType::kF8E5M2Fnuz, "e5m2fnuz", 1, 8, "e5m2fnuz"},
    TypeRow{ElementType::kF8E8M0, "e8m0fnu", 1, 8, "e8m0fnu"},
    TypeRow{ElementType::kF6E2M3, "e2m3fn", 1, 6, "e2m3fn"},
    TypeRow{ElementType::kF6E3M2, "e3m2fn", 1, 6, "e3m2fn"},
    TypeRow{ElementType::kF4E2M1, "e2m1fn", 1, 4, "e2m1fn"},
    TypeRow{ElementType::kI8, "int8", 1, 8, "int8"},
    TypeRow{ElementType::kU8, "uint8", 1, 8, ""},
    TypeRow{ElementType::kU16, "uint16", 2, 16, ""},
    TypeRow{ElementType::kU32, "uint32", 4, 32, ""},
    TypeRow{ElementType::kU64, "uint64", 8, 64, ""},
    TypeRow{ElementType::kI16, "int16", 2, 16, ""},
    TypeRow{ElementType::kI32, "int32", 4, 32, ""},
    TypeRow{ElementType::kI64, "int64", 8, 64, ""},
    TypeRow{ElementType::kBool, "bool", 1, 8, ""},
    TypeRow{ElementType::kRaw8, "raw bytes", 1, 8, ""},
    TypeRow{ElementType::kRaw16, "raw pairs of bytes", 2, 16, ""},
};

const TypeRow& RowOf(ElementType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row;
  }
  NUMSIM_CHECK(false, "element type {}", static_cast<int>(type));
  return kTypes[0];
}

}  // namespace

size_t ElementBytes(ElementType type) { return RowOf(type).bytes; }
size_t StoredBits(ElementType type) { return RowOf(type).stored_bits; }
std::string_view ToString(ElementType type) { return RowOf(type).name; }
std::string_view FormatOf(ElementType type) { return RowOf(type).format; }

size_t Array::Elements() const {
  size_t elements = 1;
  for (const size_t extent : shape) elements *= extent;
  return elements;
}

}  // namespace numsim
