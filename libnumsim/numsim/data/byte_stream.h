// The bytes of a file in their order, decompressed where the file is gzip [GZIP].
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "numsim/io/input_file.h"

namespace numsim {

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

}  // namespace numsim
