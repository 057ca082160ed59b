#include "numsim/config/internal/toml_text.h"

#include <algorithm>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Returns the position behind a string or comment that begins at `begin`; `begin` if none does.
// `previous` is the last character before it that is no blank. A string begins a line or follows
// punctuation; a key that begins with a string after a dot is left out, for so may a broken number.
size_t SkipQuoted(std::string_view text, size_t begin, char previous) {
  constexpr std::string_view kBeforeStrings = "\n=,[{";
  const char quote = text[begin];
  if (quote == '#') return std::min(text.find('\n', begin), text.size());
  if (quote != '"' && quote != '\'') return begin;
  if (kBeforeStrings.find(previous) == kBeforeStrings.npos) return begin;
  const std::string triple(3, quote);
  const bool is_long = text.substr(begin, 3) == triple;
  for (size_t at = begin + (is_long ? 3 : 1); at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;  // whatever is escaped
    } else if (is_long && text.substr(at, 3) == triple) {
      return at + 3;
    } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    }
  }
  return text.size();
}

size_t LineOf(std::string_view text, size_t position) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + position, '\n'));
}

// toml++ takes quadratic time to read a key of very many parts, and a frame of the stack per part to
// destroy it. A key does not leave its line.
void CheckDots(std::string_view document, std::string_view name) {
  constexpr size_t kMostDots = 10000;
  size_t dots = 0;
  for (size_t at = 0; at < document.size(); ++at) {
    if (document[at] == '\n') dots = 0;
    if (document[at] == '.' && ++dots > kMostDots) {
      throw Error::Format(
          "{}:{}: a key of more than {} parts", name, LineOf(document, at), kMostKeyParts);
    }
  }
}

}  // namespace

size_t FindNonAscii(std::string_view document) {
  char previous = '\n';
  for (size_t at = 0; at < document.size();) {
    const size_t next = SkipQuoted(document, at, previous);
    if (next == at && static_cast<unsigned char>(document[at]) >= 0x80) return at;
    const char last = document[std::max(next, at + 1) - 1];
    if (last != ' ' && last != '\t' && last != '\r') previous = last;
    at = std::max(next, at + 1);
  }
  return std::string_view::npos;
}

void CheckTomlText(std::string_view document, std::string_view name) {
  CheckDots(document, name);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const size_t begin = document.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const size_t found = FindNonAscii(document.substr(begin));
  if (found == std::string_view::npos) return;
  throw Error::Format(
      "{}:{}: expected ASCII outside of quotes and comments, and in a key after a dot",
      name,
      LineOf(document, begin + found));
}

}  // namespace numsim
