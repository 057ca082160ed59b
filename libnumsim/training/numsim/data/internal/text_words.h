// The words of a text, which a tokenizer encodes one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace numsim {

// Returns the end of the word that begins at `begin`: a run of spaces, other characters up to a space or
// line end, a run of line ends; or one tab, NUL, U+2581 or U+2585. A word of more than kMostWord bytes
// is cut after the character that passes them. Requires valid UTF-8 and begin < text.size().
inline constexpr size_t kMostWord = 1024;
size_t WordEnd(std::string_view text, size_t begin);

// Returns true for the four characters that are a word by themselves. SentencePiece uses U+2581 for a
// space, U+2585 for the unknown, tabs as separators, and cannot learn NUL.
bool StandsApart(std::string_view word);

// A text as numbers of words, which are views of the text.
struct TextWords {
  std::vector<std::string_view> words;  // each once, in the order of their first occurrence
  std::vector<uint64_t> counts;         // of each word
  std::vector<uint32_t> sequence;       // indices of `words`: the text
};
// Throws Error if the text has 2^32 words or more.
TextWords FindWords(std::string_view text);

}  // namespace numsim
