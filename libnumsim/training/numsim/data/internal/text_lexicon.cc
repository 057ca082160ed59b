#include "numsim/data/internal/text_lexicon.h"

#include <span>
#include <unordered_set>

#include "numsim/base/error.h"
#include "numsim/data/internal/draws.h"

namespace numsim {
namespace {

// An entry that is repeated is drawn more often: some letters are rare, as in any language.
constexpr std::string_view kOnsets[] = {
    "t", "t", "t", "n", "n", "n", "r", "r", "r",  "s",  "s",  "k",  "k",  "d",  "d",  "l",
    "l", "m", "m", "p", "p", "b", "b", "g", "f",  "h",  "v",  "w",  "z",  "j",  "y",  "qu",
    "x", "c", "c", "",  "",  "",  "",  "",  "st", "tr", "pl", "br", "gr", "sh", "th", "kr"};
constexpr std::string_view kVowels[] = {
    "a", "a", "a", "a", "e", "e", "e", "e", "i", "i", "i", "o", "o", "u", "u", "ai", "ou", "ea"};
// No coda ends like kPluralNoun or kSingularVerb.
constexpr std::string_view kCodas[] = {
    "", "", "", "", "", "", "n", "n", "r", "r", "l", "l", "m", "k", "d", "nd", "rk", "m"};

constexpr std::string_view kNameConsonantLetters = "bdfgklmnprstvz";
constexpr std::string_view kNameVowelLetters = "aeiou";
constexpr char kNameEnd = 'o';
static_assert(kNameConsonantLetters.size() == kNameConsonants);
static_assert(kNameVowelLetters.size() == kNameVowels);

std::string_view Pick(std::span<const std::string_view> texts, DrawStream& draws) {
  return texts[draws.Below(static_cast<uint32_t>(texts.size()))];
}

std::string DrawStem(size_t syllables, DrawStream& draws) {
  std::string stem;
  for (size_t i = 0; i < syllables; ++i) {
    stem += Pick(kOnsets, draws);
    stem += Pick(kVowels, draws);
    if (i + 1 == syllables || draws.Below(3) == 0) stem += Pick(kCodas, draws);
  }
  return stem;
}

// Frequent words are short. `rank` is the index of the word in its class, by frequency.
size_t DrawSyllables(size_t class_size, size_t rank, DrawStream& draws) {
  if (class_size <= 16) return 1;
  if (rank < 24) return 1 + draws.Below(2);
  return 2 + (draws.Below(class_size > 200 && rank > 120 ? 2 : 4) == 0 ? 1 : 0);
}

}  // namespace

std::string NameText(uint32_t name) {
  NUMSIM_CHECK(name < kNames, "name {}", name);
  std::string text;
  for (int syllable = 0; syllable < 2; ++syllable) {
    text += kNameConsonantLetters[name % kNameConsonants];
    name /= kNameConsonants;
    text += kNameVowelLetters[name % kNameVowels];
    name /= kNameVowels;
  }
  text += kNameConsonantLetters[name];
  text += kNameEnd;
  text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

Lexicon::Lexicon(uint64_t seed) {
  DrawStream draws({seed, 0});
  std::unordered_set<std::string> taken;
  for (size_t word_class = 0; word_class < kWordClasses; ++word_class) {
    std::vector<std::string>& stems = stems_[word_class];
    while (stems.size() < kClassSizes[word_class]) {
      std::string stem =
          DrawStem(DrawSyllables(kClassSizes[word_class], stems.size(), draws), draws);
      if (stem.back() == kNameEnd || !taken.insert(stem).second) continue;
      stems.push_back(std::move(stem));
    }
  }
}

}  // namespace numsim
