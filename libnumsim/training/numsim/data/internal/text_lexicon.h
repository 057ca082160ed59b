// The words of generated text. They are invented and pronounceable, and no two forms are spelled
// alike.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numsim {

enum class WordClass : uint8_t {
  kDeterminer,   // before a singular
  kDeterminers,  // before a plural
  kAdjective,
  kNoun,
  kTransitive,
  kIntransitive,
  kAdverb,
  kPreposition,
  kConjunction,
  kQuestion,  // begins a question
  kPronoun,
  kSay,    // before quoted speech
  kTopic,  // in titles
  kSince,  // before a year
};
inline constexpr size_t kWordClasses = 14;

// The number of words in each class. Words are indexed from the most to the least frequent.
inline constexpr std::array<size_t, kWordClasses> kClassSizes = {
    5, 4, 300, 1200, 300, 160, 90, 14, 5, 4, 2, 3, 24, 1};
constexpr size_t ClassSize(WordClass word_class) {
  return kClassSizes[static_cast<size_t>(word_class)];
}

// Endings added to a stem. A stem ends neither in one of these nor in 'o'; a name always ends in
// 'o'.
inline constexpr std::string_view kPluralNoun = "s";
inline constexpr std::string_view kSingularVerb = "t";

// Names have three syllables, and the last vowel is 'o', as in "Kalumo".
inline constexpr uint32_t kNameConsonants = 14, kNameVowels = 5;
inline constexpr uint32_t kNames =
    (kNameConsonants * kNameVowels) * (kNameConsonants * kNameVowels) * kNameConsonants;
// Returns the name with the given number, capitalised. Requires name < kNames.
std::string NameText(uint32_t name);

class Lexicon {
 public:
  explicit Lexicon(uint64_t seed);

  // Returns the stem of a word. Requires index < ClassSize(word_class).
  std::string_view Stem(WordClass word_class, size_t index) const {
    return stems_[static_cast<size_t>(word_class)][index];
  }

 private:
  std::array<std::vector<std::string>, kWordClasses> stems_;
};

}  // namespace numsim
