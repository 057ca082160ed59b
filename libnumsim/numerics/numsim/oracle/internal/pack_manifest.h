// Writes and parses the manifest.json of a pack. Used only by pack.cc.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/oracle/pack.h"

namespace numsim {

// Data about a file that the manifest states in addition to its entry.
struct WrittenFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t cases = 0;
  std::string sha256;
};

// Returns the text of the manifest. Requires one written file per entry.
std::string PackManifestText(std::string_view set,
                             const PackForm& form,
                             std::span<const PackEntry> entries,
                             std::span<const WrittenFile> files);

// Parses the text of a manifest. Throws Error, a single line that begins with `file`, if the text
// is not a valid manifest.
Pack ParsePackManifest(std::string_view text, std::string_view file);

}  // namespace numsim
