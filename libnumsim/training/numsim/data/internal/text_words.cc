#include "numsim/data/internal/text_words.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "numsim/base/error.h"
#include "numsim/data/utf8_file.h"

namespace numsim {
namespace {

constexpr std::array<std::string_view, 4> kApart = {
    std::string_view("\0", 1), "\t", "\xE2\x96\x81", "\xE2\x96\x85"};

// Returns the size of the character at the beginning of `text` if it stands apart, otherwise 0.
size_t ApartAt(std::string_view text) {
  for (const std::string_view character : kApart) {
    if (text.starts_with(character)) return character.size();
  }
  return 0;
}

}  // namespace

size_t WordEnd(std::string_view text, size_t begin) {
  if (const size_t apart = ApartAt(text.substr(begin)); apart > 0) return begin + apart;
  const size_t most = std::min(text.size(), begin + kMostWord);
  size_t end = begin;
  while (end < most && text[end] == ' ') ++end;
  while (end < most && text[end] != ' ' && text[end] != '\n' && ApartAt(text.substr(end)) == 0) {
    ++end;
  }
  while (end < most && text[end] == '\n') ++end;
  return NextCharacter(text, end);
}

bool StandsApart(std::string_view word) { return !word.empty() && ApartAt(word) == word.size(); }

TextWords FindWords(std::string_view text) {
  TextWords result;
  std::unordered_map<std::string_view, uint32_t> known;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = WordEnd(text, begin);
    const std::string_view word = text.substr(begin, end - begin);
    const auto [place, added] = known.try_emplace(word, static_cast<uint32_t>(result.words.size()));
    if (added) {
      result.words.push_back(word);
      result.counts.push_back(0);
    }
    ++result.counts[place->second];
    result.sequence.push_back(place->second);
    begin = end;
  }
  if (result.sequence.size() > std::numeric_limits<uint32_t>::max()) {
    throw Error::Format("a text of {} words, expected fewer than 2^32", result.sequence.size());
  }
  return result;
}

}  // namespace numsim
