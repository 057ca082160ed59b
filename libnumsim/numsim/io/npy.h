// NumPy's .npy files, format versions 1.0, 2.0 and 3.0 [NPY].
#pragma once

#include <filesystem>
#include <vector>

#include "numsim/io/array.h"

namespace numsim {

// What a .npy header says.
struct NpyHeader {
  ElementType type = ElementType::kF32;
  bool reversed_bytes = false;  // byte order of the file is not the machine's
  bool fortran_order = false;
  std::vector<size_t> shape;
  size_t data_offset = 0;  // of the first element in the file
};

// Reads and checks the header alone; the file is known to hold exactly the data it promises.
// Element types: float16, float32, float64, uint8 to uint64 of either byte order. Any rank,
// zero extents included. Throws Error naming file and field for anything else: bad magic, unknown
// version, a header beyond the file's end or above 1 MiB, a header that is not the dict of exactly
// descr, fortran_order and shape, other types, too large shapes, missing or surplus bytes.
NpyHeader ReadNpyHeader(const std::filesystem::path& path);

// Reads the array into C order and native byte order, whatever the file's. Throws Error like
// ReadNpyHeader. Never allocates more than the file's size, twice that for Fortran order.
Array ReadNpy(const std::filesystem::path& path);

// Replaces the file in one step (see atomic_file.h): version 1.0, or 2.0 where the header needs it,
// C order, data aligned to 64 bytes; the same bytes that numpy.save writes up to rank 32.
// Throws Error for bfloat16, e4m3fn and e5m2, which .npy cannot name (store their codes as uint16
// or uint8), and when the file cannot be written. Requires array.bytes to fit type and shape.
void WriteNpy(const std::filesystem::path& path, const Array& array);

}  // namespace numsim
