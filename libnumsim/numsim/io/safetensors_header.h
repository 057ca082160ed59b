// The JSON header of .safetensors files: io's own, used by safetensors.cc and its writer alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/safetensors.h"

namespace numsim {

// The type that numsim reads of that dtype, "F32" and so on; none for others.
std::optional<ElementType> TypeOf(std::string_view dtype);
// The dtype of elements of that type.
std::string_view DtypeOf(ElementType type);

// A tensor with the range [begin, end) of its bytes, counted from the end of the header.
struct TensorRange {
  TensorInfo info;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorRange> tensors;  // ordered by range
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Parses and checks the header of a file with `data_bytes` bytes after it. The type of a tensor is
// not set. Throws Error, one line that starts with `file`; see SafetensorsFile.
SafetensorsHeader ParseSafetensorsHeader(std::string_view json,
                                         uint64_t data_bytes,
                                         std::string_view file);

}  // namespace numsim
