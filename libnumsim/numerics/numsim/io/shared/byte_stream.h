// Reads files that may be compressed by gzip [GZIP].
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "numsim/io/input_file.h"

namespace numsim {

// The content of a file, read sequentially and decompressed if the file is gzip.
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

// A compressed text may be as large as this, so that a small file cannot fill the memory.
inline constexpr uint64_t kMaxInflatedText = uint64_t{1} << 30;

// Returns the content of a file, decompressed if the file is gzip. Throws Error as ByteStream does,
// and if a compressed content is larger than `most`.
std::string ReadInflatedText(const std::filesystem::path& path, uint64_t most = kMaxInflatedText);

}  // namespace numsim
