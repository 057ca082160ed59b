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

// The dict literal in the header of a .npy file; used only by npy.cc.

struct NpyDict {
  std::string descr;  // a simple type, e.g. "<f4"
  bool fortran_order = false;
  std::vector<size_t> shape;
};

// Parses the Python dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
// Allows keys in any order, single or double quotes without escapes, and white space anywhere.
// Throws Error, with a one-line message that starts with `file`, for anything else: missing,
// unknown or repeated keys, values of other kinds (structured types are lists), extents that are
// negative or above 2^63 - 1, text after the dict.
NpyDict ParseNpyDict(std::string_view text, std::string_view file);

// Returns the dict as NumPy writes it, without padding.
std::string NpyDictText(const NpyDict& dict);

// The JSON header of .safetensors files; used only by safetensors.cc and safetensors_writer.cc.

// Returns the element type for a dtype such as "F32"; nullopt if numsim cannot read the dtype.
std::optional<ElementType> TypeOf(std::string_view dtype);
// Returns the dtype for an element type. Throws Error for raw bytes, which have none.
std::string_view DtypeOf(ElementType type);

// A tensor and the range [begin, end) of its bytes, counted from the end of the header.
struct TensorRange {
  TensorInfo info;
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorRange> tensors;  // ordered by range
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Parses and checks the header of a file that has `data_bytes` bytes after the header. Does not set
// TensorInfo::type. Throws Error as SafetensorsFile does, with a one-line message that starts with
// `file`.
SafetensorsHeader ParseSafetensorsHeader(std::string_view text,
                                         uint64_t data_bytes,
                                         std::string_view file);

}  // namespace numsim
