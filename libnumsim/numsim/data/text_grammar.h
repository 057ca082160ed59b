// The grammar of generated text, as data: context-free rules with probabilities. What depends on
// context (agreement apart, which the symbols carry) is in text_model.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "numsim/data/text_lexicon.h"

namespace numsim {

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

}  // namespace numsim
