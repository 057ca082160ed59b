// Output files that appear under their name either complete or not at all, also after a loss of power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace numsim {

// Writes to a hidden temporary file in the directory of `path`; Commit renames it to `path`. If
// `path` is a symbolic link to a file, that file is replaced and the link is kept. Every member
// throws Error naming `path` on failure (no directory, no permission, disk full); the temporary
// file is then removed and the previous file at `path` is unchanged.
class AtomicFile {
 public:
  // Throws Error if `path` exists and is not a regular file (a directory, a device), or if the
  // temporary file cannot be created.
  explicit AtomicFile(const std::filesystem::path& path);
  // Removes the temporary file unless Commit was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends to the file. Requires that Commit was not called.
  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text);

  // Moves the file to its final path. Once it returns, the file survives a loss of power. Requires that
  // Commit was not called before.
  void Commit();

 private:
  [[noreturn]] void Fail(std::string_view action, int error_number);
  void Discard() noexcept;

  std::filesystem::path path_;       // as given by the caller, for messages
  std::filesystem::path target_;     // with links resolved
  std::filesystem::path temporary_;  // empty: nothing to remove
  int descriptor_ = -1;
};

// Writes a whole file through AtomicFile.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace numsim
