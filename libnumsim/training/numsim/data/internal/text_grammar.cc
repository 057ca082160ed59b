#include <algorithm>

#include "numsim/data/internal/text_model.h"

namespace numsim {
namespace {

using enum TextSymbol;

// The rules, grouped by left side. A text has at most one derivation: the alternatives of a symbol
// differ in their first words, or in words of classes that share no spelling.
constexpr TextRule kRules[] = {
    {kDocument, 256, {kTitleOpen, kTopic, kColon, kNewName, kNewName, kCastThird}},
    {kCastThird, 112, {kNewName, kCastFourth}},
    {kCastThird, 144, {kComma, kTitleYear, kTitleClose, kSentence, kRest}},
    {kCastFourth, 96, {kNewName, kComma, kTitleYear, kTitleClose, kSentence, kRest}},
    {kCastFourth, 160, {kComma, kTitleYear, kTitleClose, kSentence, kRest}},
    {kRest, 192, {kSentence, kRest}},
    {kRest, 46, {kParagraph, kSentence, kRest}},
    {kRest, 18, {kDocumentEnd, kDocument}},
    {kSentence, 188, {kStatement}},
    {kSentence, 18, {kSince, kYear, kComma, kStatement}},
    {kSentence, 14, {kAdverb, kComma, kStatement}},
    {kSentence, 16, {kQuestion, kClause, kQuestionMark}},
    {kSentence, 20, {kName, kSay, kQuoteOpen, kClause, kQuoteClose}},
    {kStatement, 190, {kClause, kEnd}},
    {kStatement, 56, {kClause, kComma, kConjunction, kClause, kEnd}},
    {kStatement, 10, {kClause, kSemicolon, kClause, kEnd}},
    {kEnd, 246, {kPeriod}},
    {kEnd, 10, {kExclamation}},
    {kClause, 84, {kName, kVerbPhraseS}},
    {kClause, 28, {kPronoun, kVerbPhraseS}},
    {kClause, 92, {kSubjectS, kVerbPhraseS}},
    {kClause, 52, {kSubjectP, kVerbPhraseP}},
    {kVerbPhraseS, 130, {kTransitiveS, kObject}},
    {kVerbPhraseS, 54, {kTransitiveS, kObject, kPreposition, kPlace}},
    {kVerbPhraseS, 48, {kIntransitiveS, kManner}},
    {kVerbPhraseS, 24, {kIntransitiveS, kPreposition, kPlace}},
    {kVerbPhraseP, 130, {kTransitiveP, kObject}},
    {kVerbPhraseP, 54, {kTransitiveP, kObject, kPreposition, kPlace}},
    {kVerbPhraseP, 48, {kIntransitiveP, kManner}},
    {kVerbPhraseP, 24, {kIntransitiveP, kPreposition, kPlace}},
    {kSubjectS, 206, {kNounPhraseS}},
    {kSubjectS, 50, {kNounPhraseS, kPreposition, kPlace}},
    {kSubjectP, 206, {kNounPhraseP}},
    {kSubjectP, 50, {kNounPhraseP, kPreposition, kPlace}},
    {kNounPhraseS, 256, {kDeterminerS, kAdjectives, kNounS}},
    {kNounPhraseP, 186, {kDeterminerP, kAdjectives, kNounP}},
    {kNounPhraseP, 70, {kCount, kAdjectives, kNounP}},
    {kAdjectives, 162, {}},
    {kAdjectives, 80, {kAdjective}},
    {kAdjectives, 14, {kAdjective, kAdjective}},
    {kObject, 64, {kName}},
    {kObject, 124, {kNounPhraseS}},
    {kObject, 68, {kNounPhraseP}},
    {kPlace, 24, {kName}},
    {kPlace, 172, {kNounPhraseS}},
    {kPlace, 60, {kNounPhraseP}},
    {kManner, 120, {}},
    {kManner, 130, {kAdverb}},
    {kManner, 6, {kBracketOpen, kAdverb, kBracketClose}},
};

struct WordLine {
  TextSymbol symbol;
  TextWord word;
};
constexpr WordLine kWords[] = {
    {kDeterminerS, {WordClass::kDeterminer, ""}},
    {kDeterminerP, {WordClass::kDeterminers, ""}},
    {kAdjective, {WordClass::kAdjective, ""}},
    {kNounS, {WordClass::kNoun, ""}},
    {kNounP, {WordClass::kNoun, kPluralNoun}},
    {kTransitiveS, {WordClass::kTransitive, kSingularVerb}},
    {kTransitiveP, {WordClass::kTransitive, ""}},
    {kIntransitiveS, {WordClass::kIntransitive, kSingularVerb}},
    {kIntransitiveP, {WordClass::kIntransitive, ""}},
    {kAdverb, {WordClass::kAdverb, ""}},
    {kPreposition, {WordClass::kPreposition, ""}},
    {kConjunction, {WordClass::kConjunction, ""}},
    {kQuestion, {WordClass::kQuestion, ""}},
    {kPronoun, {WordClass::kPronoun, ""}},
    {kSay, {WordClass::kSay, ""}},
    {kTopic, {WordClass::kTopic, ""}},
    {kSince, {WordClass::kSince, ""}},
};

struct MarkLine {
  TextSymbol symbol;
  TextMark mark;
};
constexpr MarkLine kMarks[] = {
    {kTitleOpen, {"= ", false, true}},
    {kColon, {":", true, false}},
    {kTitleClose, {" =\n", false, true}},
    {kComma, {",", true, false}},
    {kSemicolon, {";", true, false}},
    {kPeriod, {".", true, true}},
    {kExclamation, {"!", true, true}},
    {kQuestionMark, {"?", true, true}},
    {kQuoteOpen, {": \"", false, true}},
    {kQuoteClose, {".\"", true, true}},
    {kBracketOpen, {" (", false, false}},
    {kBracketClose, {")", true, false}},
    {kParagraph, {"\n", false, true}},
    {kDocumentEnd, {"\n\n", false, true}},
};

}  // namespace

std::span<const TextRule> RulesOf(TextSymbol symbol) {
  const auto has_symbol = [symbol](const TextRule& rule) { return rule.left == symbol; };
  const TextRule* const first = std::find_if(std::begin(kRules), std::end(kRules), has_symbol);
  const TextRule* const last = std::find_if_not(first, std::end(kRules), has_symbol);
  return {first, last};
}

std::optional<TextWord> WordOf(TextSymbol symbol) {
  for (const WordLine& line : kWords) {
    if (line.symbol == symbol) return line.word;
  }
  return std::nullopt;
}

std::optional<TextMark> MarkOf(TextSymbol symbol) {
  for (const MarkLine& line : kMarks) {
    if (line.symbol == symbol) return line.mark;
  }
  return std::nullopt;
}

}  // namespace numsim
