// Output files that appear under their name complete or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace numsim {

// Writes to a hidden temporary file in the directory of `path`; Commit renames it over `path`.
// A symbolic link to a file is followed: the file it leads to is replaced, the link stays.
// Every member throws Error naming `path` on failure (no directory, no permission, disk full); the
// temporary is then removed and what stood at `path` before is untouched.
class AtomicFile {
 public:
  // Throws Error when `path` exists and is no regular file (a directory, a device), or the
  // temporary cannot be created.
  explicit AtomicFile(const std::filesystem::path& path);
  // Without Commit, removes the temporary.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Requires that Commit was not called.
  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text);

  // Puts the file in place. Requires that it was not called before.
  void Commit();

 private:
  [[noreturn]] void Fail(std::string_view action, int error_number);
  void Discard() noexcept;

  std::filesystem::path path_;       // as given, for messages
  std::filesystem::path target_;     // links resolved
  std::filesystem::path temporary_;  // empty: nothing to remove
  int descriptor_ = -1;
};

// AtomicFile in one call.
void WriteFileAtomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace numsim
