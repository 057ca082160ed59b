// The library that trains tokenizers and finds the pieces of words, where numsim is built with it. Only
// pieces_sentencepiece.cc knows it; elsewhere pieces_absent.cc stands in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// A word of a text and how often it occurs.
struct CountedWord {
  std::string_view word;
  uint64_t count = 0;
};

// Returns what decides the result of a training besides its words: library, version and settings. Empty
// in a build without the library.
std::string PieceRecipe();

// Returns the bytes of a model of at most `vocabulary` entries, fewer if the words have no more pieces.
// The words have neither spaces except at the beginning, nor tabs, NUL, U+2581 or U+2585, which mean
// something else to the library. Throws KeyError of "data.vocabulary" if the characters alone are more,
// and Error if the library fails for another reason.
std::string TrainPieces(std::span<const CountedWord> words, size_t vocabulary);

// A loaded model.
class PieceModel {
 public:
  // As the constructor of Tokenizer.
  PieceModel(std::string_view model, const std::string& name);
  ~PieceModel();

  size_t Size() const;
  // Returns the bytes for which a piece stands; empty for pieces of no text.
  std::string Text(size_t piece) const;
  // Returns the piece of a byte.
  uint16_t Byte(uint8_t byte) const { return bytes_[byte]; }
  // Returns the pieces of a word.
  std::vector<uint16_t> Encode(std::string_view word) const;

 private:
  struct Library;
  std::unique_ptr<const Library> library_;
  std::vector<uint16_t> bytes_;
};

}  // namespace numsim
