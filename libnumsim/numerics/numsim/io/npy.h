// Reads and writes NumPy's .npy files, format versions 1.0, 2.0 and 3.0 [NPY].
#pragma once

#include <filesystem>
#include <vector>

#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"

namespace numsim {

// The contents of a .npy header.
struct NpyHeader {
  ElementType type = ElementType::kF32;
  bool reversed_bytes = false;  // the file's byte order is not the machine's
  bool fortran_order = false;
  std::vector<size_t> shape;
  size_t data_offset = 0;  // position of the first element in the file
};

// Reads and checks the header only, including that the file has exactly the number of data bytes
// that the header states. Accepts float16, float32, float64, int8 to int64 and uint8 to uint64 in
// either byte order, and as raw bytes what NumPy writes for formats that it does not know (f1, V1 and
// V2), of any rank, also with zero extents. Throws Error naming file and field for anything else:
// bad magic, unknown version, a header that exceeds the file or 1 MiB, a header that is not a dict
// of exactly descr, fortran_order and shape, other types, shapes that are too large, missing or
// surplus bytes.
NpyHeader ReadNpyHeader(const std::filesystem::path& path);

// Reads the array and converts it to C order and native byte order. Throws Error as ReadNpyHeader
// does. Never allocates more than the file's size, or twice that for Fortran order.
Array ReadNpy(const std::filesystem::path& path);

// Writes the array in C order, replacing the file atomically (see atomic_file.h). Uses version 1.0,
// or 2.0 if the header needs it, and aligns the data to 64 bytes; up to rank 32 the bytes equal
// those of numpy.save. Requires array.bytes to match type and shape. Throws Error for a type for
// which .npy has no name, such as bfloat16 and e4m3fn (store their codes as uint16 or uint8), and if
// the file cannot be written.
void WriteNpy(const std::filesystem::path& path, const Array& array);

// Writes the same bytes to `file`, a new AtomicFile for `path`, and leaves Commit to the caller,
// who can then write several files before any of them appears.
void AppendNpy(const std::filesystem::path& path, const Array& array, AtomicFile& file);

}  // namespace numsim
