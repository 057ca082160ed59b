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

#include "numsim/io/input_file.h"

namespace numsim {

// The bytes of a file in their order, decompressed where the file is gzip [GZIP].

class ByteStream {
 public:
  // Whether the file is gzip is told by its first two bytes, whatever its name. Throws Error like
  // InputFile.
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `destination` and returns its size, or less at the end of the bytes, then 0. Throws Error
  // naming the file when reading fails, and where compressed data are broken: a member that is
  // damaged or cut short, anything but a further member behind one.
  size_t Read(std::span<std::byte> destination);

  const std::filesystem::path& Path() const { return file_.Path(); }
  bool Compressed() const { return inflater_ != nullptr; }

 private:
  class Inflater;

  InputFile file_;
  uint64_t offset_ = 0;                 // of the next byte of a plain file
  std::unique_ptr<Inflater> inflater_;  // none: a plain file
};

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
