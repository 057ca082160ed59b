// Images with captions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Returns the lines of a text without their terminators ("\n" or "\r\n"). The last line may lack a
// terminator.
std::vector<std::string_view> Lines(std::string_view text);

// The columns of meta.tsv, an optional table beside images with captions. See ReadCaptionFolder for
// its format.
struct CaptionMeta {
  std::vector<std::string> concepts;  // empty if there is no such column
  std::vector<bool> valid;            // empty if there is no such column
};

// Reads meta.tsv for `images` images. Throws Error naming the file and line if the number of lines
// or fields is wrong, a column occurs twice, a concept is empty, or a split is neither train nor
// valid.
CaptionMeta ReadCaptionMeta(const std::filesystem::path& path, size_t images);

// Holds `count` images of height x width x channels, channels last, each with one caption and one
// concept.
struct CaptionSet {
  size_t count = 0;
  size_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
  std::vector<std::string> captions;
  std::vector<int32_t> concepts;  // numbered from 0; images of one concept have equal numbers
};

struct CaptionFolder {
  CaptionSet set;
  // Per image, true if it is for validation; empty if the folder has no split.
  std::vector<bool> valid;
};

// Reads a folder that holds
//   one *.npy     uint8, n x height x width x channels
//   captions.txt  n lines of UTF-8 (utf8_file.h), none empty; '\r' at the end of a line is removed
//   meta.tsv      optional, fields separated by tabs: a header line, then n lines. The column
//                 `concept` names the concepts; without it, each distinct caption is a concept. The
//                 column `split` holds train or valid. Other columns are ignored.
// Concepts are numbered in the order of their first images. Throws Error naming the file, and the
// line where applicable, if anything else is found.
CaptionFolder ReadCaptionFolder(const std::filesystem::path& folder);

// Returns the images with the given numbers, in that order.
CaptionSet Subset(const CaptionSet& set, std::span<const size_t> images);

}  // namespace numsim
