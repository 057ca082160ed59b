// The dict literal at the head of a .npy file: io's own, used by npy.cc alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

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

}  // namespace numsim
