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

// The table that may stand beside images with captions: meta.tsv (caption_set.h).

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

// `count` images of height x width x channels, channels last; one caption and one concept each.
struct CaptionSet {
  size_t count = 0;
  size_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;
  std::vector<std::string> captions;
  std::vector<int32_t> concepts;  // from 0; images of one concept have equal numbers
};

struct CaptionFolder {
  CaptionSet set;
  // Whether each image is for validation; empty where the folder does not say.
  std::vector<bool> valid;
};

// Reads a folder that holds
//   one *.npy     uint8, n x height x width x channels
//   captions.txt  n lines of UTF-8 (utf8_file.h), none empty; '\r' at an end is left out
//   meta.tsv      optional: fields separated by tabs, a line of names, then n lines. The column
//                 `concept` names the concepts; without it they are the captions. The column
//                 `split` holds train or valid. Other columns are not read.
// Concepts are numbered in the order of their first images. Throws Error naming the file, and the
// line where there is one, for anything else.
CaptionFolder ReadCaptionFolder(const std::filesystem::path& folder);

// The images of these numbers, in that order.
CaptionSet Subset(const CaptionSet& set, std::span<const size_t> images);

}  // namespace numsim
