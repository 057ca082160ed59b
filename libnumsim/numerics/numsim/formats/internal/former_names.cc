// Format names in texts of older versions.
#include <algorithm>
#include <cctype>

#include "numsim/formats/format_names.h"

namespace numsim {
namespace {

constexpr std::string_view kChanged[] = {"e2m1", "e2m3", "e3m2", "ue4m3"};

bool IsPartOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

// Returns true for a piece of a text between commas, blanks and quotes that is a path. FORMAT/FORMAT
// is none.
bool IsPath(std::string_view piece) {
  const size_t value = piece.find('=');
  if (value != piece.npos) piece.remove_prefix(value + 1);
  return piece.starts_with('/') || piece.starts_with('.') || piece.starts_with('~') ||
         std::count(piece.begin(), piece.end(), '/') > 1;
}

using Replacement = std::string (*)(std::string_view word, bool has_keys);

void AppendPiece(std::string_view piece, Replacement replacement, std::string& text) {
  if (IsPath(piece)) {
    text += piece;
    return;
  }
  for (size_t begin = 0; begin < piece.size();) {
    size_t end = begin;
    while (end < piece.size() && IsPartOfName(piece[end])) ++end;
    const std::string_view rest = piece.substr(end);
    const bool has_keys = rest.starts_with(':') && rest.find('=') != rest.npos;
    text += replacement(piece.substr(begin, end - begin), has_keys);
    if (end < piece.size()) text += piece[end++];
    begin = end;
  }
}

std::string FromFormerName(std::string_view word, bool) {
  const bool changed =
      std::find(std::begin(kChanged), std::end(kChanged), word) != std::end(kChanged);
  return (changed ? "ieee-" : "") + std::string(word);
}

}  // namespace

std::string ReplaceFormatNames(std::string_view text, Replacement replacement) {
  constexpr std::string_view kEnds = ",; \t\n\"'[]{}";
  std::string result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(kEnds, begin), text.size());
    AppendPiece(text.substr(begin, end - begin), replacement, result);
    if (end < text.size()) result += text[end];
    begin = end + 1;
  }
  return result;
}

std::string FromFormerNames(std::string_view text) {
  return ReplaceFormatNames(text, FromFormerName);
}

}  // namespace numsim
