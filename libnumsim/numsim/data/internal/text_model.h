// The process that generates text, one choice after another, with the probability of every choice.
//
// A text is derived from left to right by the rules of text_grammar.h. Four things depend on more
// than the rule at hand:
//   topic  the first word of a document's title. It makes some twentieth of the nouns, adjectives
//   and
//          verbs much more frequent in this document.
//   cast   the names of the title. Nearly all names of the document are one of these.
//   echo   a noun may be one of the last six of the document; a year may be the title's.
//   pairs  an open-class word makes four nouns, adjectives and verbs each more likely behind it, up
//          to the end of the sentence.
// The probability of a word is the sum over these reasons for choosing it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/data/internal/draws.h"
#include "numsim/data/internal/text_lexicon.h"

namespace numsim {

// Probabilities of numbered outcomes as multiples of 2^-24.

class TextTable {
 public:
  static constexpr uint32_t kTotal = 1u << 24;

  // Outcome i about in proportion to weights[i] > 0, and possible in any case. Requires 1 <=
  // weights.size() <= 2^16.
  explicit TextTable(std::span<const double> weights);

  size_t size() const { return ends_.size(); }
  // Of kTotal, > 0; they add up to kTotal.
  uint32_t Weight(size_t i) const { return ends_[i] - (i == 0 ? 0 : ends_[i - 1]); }
  // The outcome of a random word: outcome i for exactly Weight(i) * 2^8 of all words.
  size_t Outcome(uint32_t word) const;

 private:
  std::vector<uint32_t> ends_;  // sums of the weights up to each outcome
};

// Weights of Zipf's law with Mandelbrot's offset: 1 / (rank + 2.7), rank from 0.
std::vector<double> ZipfWeights(size_t count);

// The grammar of generated text, as data: context-free rules with probabilities. What depends on
// context (agreement apart, which the symbols carry) is in text_model.h.

// S and P: singular and plural.
enum class TextSymbol : uint8_t {
  kNone,
  // Symbols that rules replace.
  kDocument,
  kCastThird,
  kCastFourth,
  kRest,  // what follows a sentence
  kSentence,
  kStatement,
  kEnd,
  kClause,
  kVerbPhraseS,
  kVerbPhraseP,
  kSubjectS,
  kSubjectP,
  kNounPhraseS,
  kNounPhraseP,
  kAdjectives,
  kObject,
  kPlace,
  kManner,
  // Words of the lexicon.
  kDeterminerS,
  kDeterminerP,
  kAdjective,
  kNounS,
  kNounP,
  kTransitiveS,
  kTransitiveP,
  kIntransitiveS,
  kIntransitiveP,
  kAdverb,
  kPreposition,
  kConjunction,
  kQuestion,
  kPronoun,
  kSay,
  kTopic,
  kSince,
  // Other units that are drawn.
  kNewName,  // of the title: joins the document's cast
  kName,
  kTitleYear,
  kYear,
  kCount,
  // Fixed texts.
  kTitleOpen,
  kColon,
  kTitleClose,
  kComma,
  kSemicolon,
  kPeriod,
  kExclamation,
  kQuestionMark,
  kQuoteOpen,
  kQuoteClose,
  kBracketOpen,
  kBracketClose,
  kParagraph,
  kDocumentEnd,
};

// A symbol becomes `right` with probability weight / kRuleTotal; unused places are kNone.
inline constexpr uint32_t kRuleTotal = 256;
struct TextRule {
  TextSymbol left;
  uint32_t weight;
  std::array<TextSymbol, 6> right;
};
// The rules of a symbol, whose weights add up to kRuleTotal; none for symbols that are no left
// side.
std::span<const TextRule> RulesOf(TextSymbol symbol);

// A symbol that stands for words of a class, with an ending.
struct TextWord {
  WordClass word_class;
  std::string_view ending;
};
std::optional<TextWord> WordOf(TextSymbol symbol);

// A symbol that stands for a fixed text. Behind it the next word begins with or without a space,
// with or without a capital.
struct TextMark {
  std::string_view text;
  bool space, capital;
};
std::optional<TextMark> MarkOf(TextSymbol symbol);

inline constexpr size_t kTextRecent = 6, kTextCast = 4;

// Everything that later choices depend on. All of it follows from the text so far, but for the
// rules that later words reveal.
struct TextState {
  std::array<TextSymbol, 24> pending{};  // symbols still to come, the next one last
  size_t depth = 0;
  size_t topic = 0;
  uint32_t year = 0;  // of the title, less 1000
  std::array<uint32_t, kTextCast> cast{};
  size_t cast_size = 0;
  std::array<uint16_t, kTextRecent> recent{};  // nouns
  size_t recent_size = 0, recent_next = 0;
  size_t context = 0;  // the open-class word before, within the sentence; 0: none
  bool space = false, capital = false;

  TextSymbol Top() const { return pending[depth - 1]; }
};

class TextModel {
 public:
  // Words and probabilities follow from the seed.
  explicit TextModel(uint64_t seed);

  // The beginning of a first document. Texts have no end.
  static TextState Start();

  // The choice at hand has so many alternatives, >= 1, each of a probability > 0; these add up to 1
  // but for the rounding of float64.
  size_t Alternatives(const TextState& state) const;
  // Requires alternative < Alternatives(state).
  double Probability(const TextState& state, size_t alternative) const;
  // An alternative, drawn with its probability, to within 2^-32 each.
  size_t Draw(const TextState& state, DrawStream& draws) const;
  // Makes the choice and appends its text: that of a word or a mark, none for a rule.
  void Take(TextState& state, size_t alternative, std::string& text) const;

  const Lexicon& lexicon() const { return lexicon_; }

 private:
  enum class Kind : uint8_t { kRule, kWord, kMark, kNewName, kName, kTitleYear, kYear, kCount };
  struct Symbol {
    Kind kind = Kind::kRule;
    std::span<const TextRule> rules;
    TextWord word{};
    TextMark mark{};
  };
  // Where the probability of a word comes from, in parts of 256; the rest is its class's table.
  struct Shares {
    uint32_t echo = 0, pair = 0;
  };

  const Symbol& Top(const TextState& state) const {
    return symbols_[static_cast<size_t>(state.Top())];
  }
  const TextTable& Table(WordClass word_class, size_t topic) const;
  const uint16_t* Pairs(WordClass word_class, size_t context) const;
  Shares SharesOf(const TextState& state, WordClass word_class) const;
  double WordProbability(const TextState& state, WordClass word_class, size_t index) const;
  size_t DrawWord(const TextState& state, WordClass word_class, DrawStream& draws) const;
  void TakeRule(TextState& state, const TextRule& rule) const;
  void TakeWord(TextState& state, const TextWord& word, size_t index, std::string& text) const;
  void MakeTables(DrawStream& draws);
  void MakePairs(DrawStream& draws);

  Lexicon lexicon_;
  std::vector<Symbol> symbols_;                              // by TextSymbol
  std::array<std::vector<TextTable>, kWordClasses> tables_;  // by topic, or one for all
  std::array<std::vector<uint16_t>, kWordClasses> pairs_;    // by context, or none
  TextTable counts_;                                         // 2, 3, ...
};

}  // namespace numsim
