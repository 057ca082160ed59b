// The headers of .npy and .safetensors files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/safetensors.h"

namespace numsim {

// The dict literal at the head of a .npy file: io's own, used by npy.cc alone.

struct NpyDict {
  std::string descr;  // of a simple type, e.g. "<f4"
  bool fortran_order = false;
  std::vector<size_t> shape;
};

// Parses the Python dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
// Keys in any order; single or double quotes without escapes; white space anywhere. Throws Error,
// one line that starts with `file`, for anything else: missing, unknown or repeated keys, values of
// other kinds (structured types are lists), negative extents or those above 2^63, text after it.
NpyDict ParseNpyDict(std::string_view text, std::string_view file);

// The same dict as NumPy writes it, without padding.
std::string NpyDictText(const NpyDict& dict);

// The JSON header of .safetensors files: io's own, used by safetensors.cc and its writer alone.

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
