#include "experiments/study/study_digest.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/io/manifest.h"

namespace numsim::experiments::study {
namespace {

// The parts of a file that no row follows from. A part that is not here counts.
constexpr std::string_view kWithoutRows[] = {
    "title",  "reproduces", "description",    "paper",    "figure",     "arm",
    "scale",  "runs",       "rates",          "texts",    "takes_rows", "help",
    "before", "derived",    "figures",        "words",    "outcomes",   "every_claim",
    "claims", "advice",     "paper_settings", "templates"};
// Keys of the other parts that no row follows from: texts, and which values an option may have.
constexpr std::string_view kWithoutEffect[] = {
    "help", "meaning", "unit", "limits", "part_of", "at_most", "most", "before"};
// Keys of `numsim train`, in the order in which they are set: all of them count.
constexpr std::string_view kKeys[] = {"fixed", "defaults"};
constexpr std::string_view kClaims[] = {
    "runs", "words", "outcomes", "every_claim", "claims", "templates"};

template <size_t kSize>
bool IsIn(const std::string_view (&names)[kSize], std::string_view name) {
  return std::ranges::count(names, name) > 0;
}

std::string_view FirstOf(std::string_view key) { return key.substr(0, key.find('.')); }
std::string_view LastOf(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// Lines of a text, sorted by their keys; those of one key stay in their order.
class SortedLines {
 public:
  void Add(std::string_view key, std::string line) { lines_.emplace_back(key, std::move(line)); }
  std::string Digest() {
    std::ranges::stable_sort(lines_, {}, &Line::first);
    std::string text;
    for (const auto& [key, line] : lines_) text += line + "\n";
    return Sha256OfText(text);
  }

 private:
  using Line = std::pair<std::string, std::string>;
  std::vector<Line> lines_;
};

// Adds the options of the first preset, whose order is that in which they set keys.
void AddOptions(Node& root, SortedLines& lines) {
  for (Node& preset : root.Tables("presets")) {
    for (const Node& value : preset.Values()) {
      if (value.key().find('.') != std::string::npos) lines.Add("presets", value.key());
    }
    return;
  }
}

}  // namespace

std::string DigestOfRows(Node root) {
  SortedLines lines;
  AddOptions(root, lines);
  for (const Node& value : root.Values()) {
    const std::string_view part = FirstOf(value.key());
    if (part == "presets" || IsIn(kWithoutRows, part)) continue;
    const bool ordered = IsIn(kKeys, part);
    if (!ordered && IsIn(kWithoutEffect, LastOf(value.key()))) continue;
    lines.Add(ordered ? part : value.key(), value.key() + " = " + value.ValueText());
  }
  return lines.Digest();
}

std::string DigestOfClaims(Node root) {
  SortedLines lines;
  for (const Node& value : root.Values()) {
    if (!IsIn(kClaims, FirstOf(value.key()))) continue;
    lines.Add(value.key(), value.key() + " = " + value.ValueText());
  }
  return lines.Digest();
}

}  // namespace numsim::experiments::study
