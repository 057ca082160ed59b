#include <algorithm>
#include <optional>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/data/internal/caption_set.h"
#include "numsim/data/utf8_file.h"

namespace numsim {
namespace {

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t end = line.find('\t', begin);
    fields.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return fields;
    begin = end + 1;
  }
}

// Returns the index of column `name` in the header line, or nullopt. Throws Error if it occurs
// twice.
std::optional<size_t> FindColumn(const std::string& path,
                                 const std::vector<std::string_view>& names,
                                 std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  if (std::find(found + 1, names.end(), name) != names.end()) {
    throw Error::Format("{}:1: column '{}' occurs twice", path, name);
  }
  return static_cast<size_t>(found - names.begin());
}

bool ParseSplit(const std::string& path, size_t line, std::string_view text) {
  if (text == "valid") return true;
  if (text == "train") return false;
  throw Error::Format("{}:{}: split '{}', expected train or valid", path, line, Printable(text));
}

}  // namespace

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

CaptionMeta ReadCaptionMeta(const std::filesystem::path& path, size_t images) {
  const std::string file = path.string();
  const std::string text = ReadUtf8File(path);
  const std::vector<std::string_view> lines = Lines(text);
  if (lines.size() != images + 1) {
    throw Error::Format("{}: {} lines, expected {}: a line of names and one for each image",
                        file,
                        lines.size(),
                        images + 1);
  }
  const std::vector<std::string_view> names = Fields(lines[0]);
  const std::optional<size_t> concept_column = FindColumn(file, names, "concept");
  const std::optional<size_t> split_column = FindColumn(file, names, "split");
  CaptionMeta meta;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string_view> fields = Fields(lines[i]);
    if (fields.size() != names.size()) {
      throw Error::Format(
          "{}:{}: {} fields, expected {}", file, i + 1, fields.size(), names.size());
    }
    if (concept_column) {
      if (fields[*concept_column].empty()) {
        throw Error::Format("{}:{}: the concept is empty", file, i + 1);
      }
      meta.concepts.emplace_back(fields[*concept_column]);
    }
    if (split_column) meta.valid.push_back(ParseSplit(file, i + 1, fields[*split_column]));
  }
  return meta;
}

}  // namespace numsim
