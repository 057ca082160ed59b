// idx files, the format of MNIST and its successors [IDX]: two zero bytes, the element type, the
// number of dimensions, each dimension as a big-endian uint32, then the elements, last index
// fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace numsim {

// The most elements that are read; beyond it a file is refused.
inline constexpr uint64_t kMaxIdxElements = uint64_t{1} << 32;

// Elements of type uint8. bytes.size() is the product of the dimensions.
struct IdxArray {
  std::vector<size_t> shape;
  std::vector<uint8_t> bytes;
};

// Reads a file of uint8 of that number of dimensions (1 .. 255), plain or compressed by gzip, told
// by its content. Throws Error naming the file for anything else: other first bytes, another
// element type or number of dimensions, more than kMaxIdxElements, fewer or more bytes than the
// dimensions promise, broken gzip data. The memory taken follows the bytes that are there, not what
// the header promises.
IdxArray ReadIdx(const std::filesystem::path& path, size_t dimensions);

}  // namespace numsim
