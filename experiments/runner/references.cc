#include "experiments/runner/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "experiments/runner/references_text.h"

namespace numsim::experiments {
namespace {

// Returns the text on one line, with single blanks and without the backquotes of Markdown.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '`') continue;
    const bool blank = c == ' ' || c == '\n';
    if (blank && (line.empty() || line.back() == ' ')) continue;
    line += blank ? ' ' : c;
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

bool IsYear(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return std::all_of(text.begin(), text.end(), is_digit) &&
         (text.starts_with("19") || text.starts_with("20"));
}

// Returns the first year in the entry; "" if there is none. An arXiv number is none.
std::string YearOf(std::string_view entry) {
  for (size_t i = 0; i + 4 <= entry.size(); ++i) {
    const bool begins = i == 0 || entry[i - 1] == ' ';
    const bool ends = i + 4 == entry.size() || entry[i + 4] == '.' || entry[i + 4] == ',';
    if (begins && ends && IsYear(entry.substr(i, 4))) return std::string(entry.substr(i, 4));
  }
  return "";
}

}  // namespace

std::string ReferenceOf(std::string_view key) {
  constexpr std::string_view kText = kReferencesText;
  const std::string head = fmt::format("- **[{}]** ", key);
  const size_t start = kText.find(head);
  if (start == std::string_view::npos) return "";
  const std::string_view rest = kText.substr(start + head.size());
  return OneLine(rest.substr(0, std::min(rest.find("\n- "), rest.find("\n\n"))));
}

std::vector<std::string> KeysCitedBy(std::string_view text) {
  std::vector<std::string> keys;
  for (size_t open = 0; (open = text.find('[', open)) != text.npos; ++open) {
    const size_t close = text.find(']', open);
    if (close == text.npos) break;
    std::string key(text.substr(open + 1, close - open - 1));
    const bool is_new = std::find(keys.begin(), keys.end(), key) == keys.end();
    if (is_new && !ReferenceOf(key).empty()) keys.push_back(std::move(key));
  }
  return keys;
}

std::string ShortReferenceOf(std::string_view key) {
  const std::string entry = ReferenceOf(key);
  // The title ends with the first sentence after the authors, whose initials have full stops, too.
  const size_t authors_end = entry.find(": ");
  const size_t end = entry.find(". ", authors_end == entry.npos ? 0 : authors_end);
  const std::string title = entry.substr(0, end);
  const std::string year = YearOf(entry);
  return year.empty() ? title : fmt::format("{}, {}", title, year);
}

}  // namespace numsim::experiments
