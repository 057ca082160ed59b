// Reading of regular files whose size is known before any of it is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace numsim {

class InputFile {
 public:
  // Throws Error naming the path when there is no such file, it is not a regular file (a directory,
  // a pipe) or it cannot be opened.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& Path() const { return path_; }
  uint64_t Size() const { return size_; }

  // Fills `destination` from `offset` on. Throws Error when the file ends before that or a read
  // fails. Safe to call from several threads at once.
  void Read(uint64_t offset, std::span<std::byte> destination) const;

 private:
  std::filesystem::path path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

// Returns the bytes of a regular file. Throws Error like InputFile.
std::string ReadText(const std::filesystem::path& path);

}  // namespace numsim
