// manifest.json of a pack: vectors' own, used by pack.cc alone.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/pack.h"

namespace numsim {

// What the manifest says of a file beside its entry.
struct WrittenFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t cases = 0;
  std::string sha256;
};

// The text of the manifest. Requires one written file for each entry.
std::string PackManifestText(std::string_view set,
                             std::span<const PackEntry> entries,
                             std::span<const WrittenFile> files);

// Throws Error, one line that starts with `file`, for text that is no such manifest.
std::vector<PackFile> ParsePackManifest(std::string_view text, std::string_view file);

}  // namespace numsim
