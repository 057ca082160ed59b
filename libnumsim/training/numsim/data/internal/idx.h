// idx files, the format of MNIST and its successors [IDX]: two zero bytes, the element type, the
// number of dimensions, each dimension as a big-endian uint32, then the elements, last index
// fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "numsim/io/shared/byte_stream.h"

namespace numsim {

// The maximum number of elements; files with more are rejected.
inline constexpr uint64_t kMaxIdxElements = uint64_t{1} << 32;

// An array of uint8. bytes.size() is the product of the dimensions.
struct IdxArray {
  std::vector<size_t> shape;
  std::vector<uint8_t> bytes;
};

// Reads a file of uint8 elements with the given number of dimensions (1 .. 255). The file may be
// plain or gzip-compressed, which its content decides. Throws Error naming the file if it begins
// with other bytes, has another element type or number of dimensions, more than kMaxIdxElements
// elements, fewer or more bytes than the dimensions imply, or malformed gzip data. Memory grows
// with the bytes that are actually present, not with the size that the header claims.
IdxArray ReadIdx(const std::filesystem::path& path, size_t dimensions);

}  // namespace numsim
