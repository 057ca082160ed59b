// Reads regular files. The size is known in advance, so that contents can be checked against it
// before they are trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace numsim {

class InputFile {
 public:
  // Throws Error naming the path if there is no such file, if it is not a regular file (a
  // directory, a pipe), or if it cannot be opened.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& Path() const { return path_; }
  uint64_t Size() const { return size_; }

  // Fills `destination` with the bytes from `offset` on. Throws Error if the file is too short or a
  // read fails. Thread-safe.
  void Read(uint64_t offset, std::span<std::byte> destination) const;

 private:
  std::filesystem::path path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

// Returns the bytes of a regular file. Throws Error as InputFile does.
std::string ReadText(const std::filesystem::path& path);

}  // namespace numsim
