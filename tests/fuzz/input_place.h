// Where fuzzed bytes lie for parsers that read files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace numsim::fuzz {

// Returns the path of a file in memory with these bytes, until the next call.
std::filesystem::path FileOf(std::string_view bytes);

// A folder in memory, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& Path() const { return path_; }
  // Writes a file.
  void Put(std::string_view name, std::string_view bytes) const;
  // Returns the bytes of a file.
  std::string Get(std::string_view name) const;

 private:
  std::filesystem::path path_;
};

}  // namespace numsim::fuzz
