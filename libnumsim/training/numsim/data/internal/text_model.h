// The random process that generates text. It makes one choice after another, and the probability of
// each choice is known.
//
// A text is derived from left to right by the rules of text_grammar.cc. Four things depend on more
// than the current rule:
//   topic  the first word of a document's title. It makes about one twentieth of the nouns,
//          adjectives and verbs much more frequent in this document.
//   cast   the names in the title. Nearly all names in the document are one of these.
//   echo   a noun may repeat one of the last six of the document; a year may repeat the title's.
//   pairs  an open-class word (adjective, noun, verb, adverb) makes four nouns, four adjectives and
//          four verbs of each class more likely after it, until the next such word or the end of
//          the sentence.
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

// Probabilities of numbered outcomes, as multiples of 2^-24.
class TextTable {
 public:
  static constexpr uint32_t kTotal = 1u << 24;

  // Gives outcome i a probability approximately proportional to weights[i] > 0, and never zero.
  // Requires 1 <= weights.size() <= 2^16.
  explicit TextTable(std::span<const double> weights);

  size_t size() const { return ends_.size(); }
  // Returns the probability of outcome i in units of 1 / kTotal, > 0. The weights of all outcomes
  // add up to kTotal.
  uint32_t Weight(size_t i) const { return ends_[i] - (i == 0 ? 0 : ends_[i - 1]); }
  // Maps a random word to an outcome. Exactly Weight(i) * 2^8 of the 2^32 words give outcome i.
  size_t Outcome(uint32_t word) const;

 private:
  std::vector<uint32_t> ends_;  // cumulative weights, up to and including each outcome
};

// Returns the weights of Zipf's law with Mandelbrot's offset: 1 / (rank + 2.7), with rank from 0.
std::vector<double> ZipfWeights(size_t count);

// The symbols of the grammar of generated text, which is a table of context-free rules with
// probabilities (text_grammar.cc). TextModel adds what depends on context, except for agreement in
// number, which the symbols express. S and P stand for singular and plural.
enum class TextSymbol : uint8_t {
  kNone,
  // Symbols that rules replace.
  kDocument,
  kCastThird,
  kCastFourth,
  kRest,  // everything after a sentence
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
  // Other randomly chosen units.
  kNewName,  // a name in the title; joins the document's cast
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

// A rule: `left` is replaced by `right` with probability weight / kRuleTotal. Unused places are
// kNone.
inline constexpr uint32_t kRuleTotal = 256;
struct TextRule {
  TextSymbol left;
  uint32_t weight;
  std::array<TextSymbol, 6> right;
};
// Returns the rules of a symbol, whose weights add up to kRuleTotal. Empty if no rule replaces the
// symbol.
std::span<const TextRule> RulesOf(TextSymbol symbol);

// A symbol that stands for any word of a class, with an ending.
struct TextWord {
  WordClass word_class;
  std::string_view ending;
};
// Returns the word class of a symbol, or nullopt if the symbol stands for no word.
std::optional<TextWord> WordOf(TextSymbol symbol);

// A symbol that stands for a fixed text. `space` and `capital` say whether the word after it begins
// with a space and with a capital letter.
struct TextMark {
  std::string_view text;
  bool space, capital;
};
// Returns the fixed text of a symbol, or nullopt if the symbol has none.
std::optional<TextMark> MarkOf(TextSymbol symbol);

inline constexpr size_t kTextRecent = 6, kTextCast = 4;

// The state on which later choices depend. It follows from the text so far, except for rules that
// only later words reveal.
struct TextState {
  std::array<TextSymbol, 24> pending{};  // a stack of symbols to expand, the next one last
  size_t depth = 0;
  size_t topic = 0;
  uint32_t year = 0;  // of the title, minus 1000
  std::array<uint32_t, kTextCast> cast{};
  size_t cast_size = 0;
  std::array<uint16_t, kTextRecent> recent{};  // the last nouns, a ring buffer
  size_t recent_size = 0, recent_next = 0;
  size_t context = 0;  // the previous open-class word of the sentence; 0: none
  bool space = false, capital = false;

  TextSymbol Top() const { return pending[depth - 1]; }
};

// The process: words, tables of probabilities, and the steps from one TextState to the next.
class TextModel {
 public:
  // The seed decides the words and the probabilities.
  explicit TextModel(uint64_t seed);

  // Returns the state before the first document. A text continues without end.
  static TextState Start();

  // Returns the number of alternatives of the current choice, >= 1. Each has a probability > 0; the
  // probabilities add up to 1, except for float64 rounding.
  size_t Alternatives(const TextState& state) const;
  // Returns the probability of an alternative. Requires alternative < Alternatives(state).
  double Probability(const TextState& state, size_t alternative) const;
  // Draws an alternative with its probability, to within 2^-32 each.
  size_t Draw(const TextState& state, DrawStream& draws) const;
  // Makes the choice and appends its text: that of a word or mark, or nothing for a rule.
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
  // The probability, in units of 1/256, that a word is chosen as an echo or as part of a pair. With
  // the remaining probability it is drawn from the table of its class.
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
  std::vector<Symbol> symbols_;                              // indexed by TextSymbol
  std::array<std::vector<TextTable>, kWordClasses> tables_;  // one per topic, or one for all
  std::array<std::vector<uint16_t>, kWordClasses> pairs_;    // indexed by context; may be empty
  TextTable counts_;                                         // the counts 2, 3, ...
};

}  // namespace numsim
