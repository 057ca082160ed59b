// The table that may stand beside images with captions: meta.tsv (caption_set.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// The lines of a text without their ends ("\n" or "\r\n"); the last one may lack its end.
std::vector<std::string_view> Lines(std::string_view text);

struct CaptionMeta {
  std::vector<std::string> concepts;  // empty: no such column
  std::vector<bool> valid;            // empty: no such column
};

// Reads meta.tsv for `images` images. Throws Error naming file and line: another number of lines or
// of fields than expected, a column twice, an empty concept, a split that is neither train nor
// valid.
CaptionMeta ReadCaptionMeta(const std::filesystem::path& path, size_t images);

}  // namespace numsim
