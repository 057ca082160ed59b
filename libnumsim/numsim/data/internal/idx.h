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

// The content of a file, read sequentially and decompressed if the file is gzip [GZIP].
class ByteStream {
 public:
  // Opens the file. Its first two bytes, not its name, decide whether it is gzip. Throws Error as
  // InputFile does.
  explicit ByteStream(const std::filesystem::path& path);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Fills `destination` and returns its size, or the smaller number of bytes that were left;
  // returns 0 at the end. Throws Error naming the file if reading fails or the compressed data are
  // malformed: a member is damaged or cut short, or a member is followed by anything but another
  // member.
  size_t Read(std::span<std::byte> destination);

  const std::filesystem::path& Path() const { return file_.Path(); }
  bool Compressed() const { return inflater_ != nullptr; }

 private:
  class Inflater;

  InputFile file_;
  uint64_t offset_ = 0;                 // of the next byte to read, for a plain file
  std::unique_ptr<Inflater> inflater_;  // nullptr for a plain file
};

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
