#include <algorithm>

#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

// Returns the number of characters that gnuplot's markup shows: without braces, the name of a font,
// and signs of raised and lowered text.
size_t ShownCharacters(std::string_view markup) {
  std::string shown;
  for (size_t i = 0; i < markup.size(); ++i) {
    const char c = markup[i];
    if (c == '{' && markup.substr(i + 1, 1) == "/")
      i = std::min(markup.find(' ', i), markup.size());
    if (c != '{' && c != '}' && c != '_' && c != '^' && c != '\\') shown += c;
  }
  return Characters(shown);
}

// Joins words to lines of at most `columns` characters as `count` counts them.
template <typename Count>
TextLines JoinWords(const TextLines& words, size_t columns, Count count) {
  TextLines lines;
  for (const std::string& word : words) {
    if (lines.empty() || count(lines.back()) + 1 + count(word) > columns) {
      lines.push_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
  }
  return lines;
}

}  // namespace

size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

TextLines WrapText(std::string_view text, size_t columns) {
  TextLines words;
  while (!text.empty()) {
    const size_t blank = std::min(text.find(' '), text.size());
    if (blank > 0) words.emplace_back(text.substr(0, blank));
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  return JoinWords(words, columns, Characters);
}

TextLines WrapMarkup(std::string_view label, size_t columns) {
  TextLines words(1);
  int depth = 0;
  for (const char c : label) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ' ' && depth <= 0) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return JoinWords(words, columns, ShownCharacters);
}

}  // namespace numsim
