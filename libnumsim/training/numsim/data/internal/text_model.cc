#include "numsim/data/internal/text_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr size_t kSymbols = static_cast<size_t>(TextSymbol::kDocumentEnd) + 1;
constexpr double kParts = 256;  // probabilities of reasons are in units of 1 / kParts

// The probability of each reason for choosing a word, in units of 1 / kParts.
constexpr uint32_t kEchoParts = 56, kPairParts = 72;
constexpr uint32_t kCastParts = 246;       // a name of the cast; otherwise any name
constexpr uint32_t kTitleYearParts = 192;  // the title's year; otherwise any year

constexpr double kTopicShare = 0.55;  // fraction of a class's probability for topic words
constexpr size_t kTopicPart = 20;     // at most one in this many words of a class is a topic word

constexpr uint32_t kYears = 1000, kFirstYear = 1000;
constexpr size_t kCounts = 98, kFirstCount = 2;

// Weights by rank: of the words of a pair in units of 1/16, and of the names of a cast relative to
// the sum over its size.
constexpr uint32_t kRankParts[kTextCast] = {8, 4, 2, 2};
constexpr size_t kPairWords = kTextCast;

// Classes of words that make others more likely, and classes of the words that become more likely
// (because of a pair or the topic).
constexpr WordClass kContextClasses[] = {WordClass::kAdjective,
                                         WordClass::kNoun,
                                         WordClass::kTransitive,
                                         WordClass::kIntransitive,
                                         WordClass::kAdverb};
constexpr WordClass kTopicalClasses[] = {
    WordClass::kAdjective, WordClass::kNoun, WordClass::kTransitive, WordClass::kIntransitive};

// Returns the number of a word among all context words, from 1, or 0 if its class has no pairs.
size_t ContextOf(WordClass word_class, size_t index) {
  size_t first = 1;
  for (const WordClass context : kContextClasses) {
    if (context == word_class) return first + index;
    first += ClassSize(context);
  }
  return 0;
}

size_t Contexts() { return ContextOf(WordClass::kAdverb, ClassSize(WordClass::kAdverb)); }

uint32_t RankTotal(size_t count) {
  uint32_t total = 0;
  for (size_t i = 0; i < count; ++i) total += kRankParts[i];
  return total;
}

size_t DrawRank(size_t count, DrawStream& draws) {
  uint32_t place = draws.Below(RankTotal(count));
  size_t rank = 0;
  while (place >= kRankParts[rank]) place -= kRankParts[rank++];
  return rank;
}

// Returns the top 8 bits of a random word, which decide between reasons.
uint32_t DrawPart(DrawStream& draws) { return draws.Word() >> 24; }

double NameProbability(const TextState& state, uint32_t name) {
  uint32_t parts = 0;
  for (size_t i = 0; i < state.cast_size; ++i) parts += state.cast[i] == name ? kRankParts[i] : 0;
  return (kCastParts * static_cast<double>(parts) / RankTotal(state.cast_size) +
          (kParts - kCastParts) / kNames) /
         kParts;
}

double YearProbability(const TextState& state, uint32_t year) {
  return ((year == state.year ? kTitleYearParts : 0) + (kParts - kTitleYearParts) / kYears) /
         kParts;
}

void AppendUnit(TextState& state, std::string_view unit, std::string& text) {
  if (state.space) text += ' ';
  const size_t first = text.size();
  text += unit;
  if (state.capital && text[first] >= 'a' && text[first] <= 'z') {
    text[first] = static_cast<char>(text[first] - 'a' + 'A');
  }
  state.space = true;
  state.capital = false;
}

}  // namespace

TextModel::TextModel(uint64_t seed)
    : lexicon_(DeriveSeed(seed, RandomPurpose::kText)),
      symbols_(kSymbols),
      counts_(ZipfWeights(kCounts)) {
  for (size_t i = 0; i < kSymbols; ++i) {
    const auto id = static_cast<TextSymbol>(i);
    Symbol& symbol = symbols_[i];
    symbol.rules = RulesOf(id);
    if (const auto word = WordOf(id)) {
      symbol.kind = Kind::kWord;
      symbol.word = *word;
    } else if (const auto mark = MarkOf(id)) {
      symbol.kind = Kind::kMark;
      symbol.mark = *mark;
    }
  }
  const auto set = [this](TextSymbol id, Kind kind) {
    symbols_[static_cast<size_t>(id)].kind = kind;
  };
  set(TextSymbol::kNewName, Kind::kNewName);
  set(TextSymbol::kName, Kind::kName);
  set(TextSymbol::kTitleYear, Kind::kTitleYear);
  set(TextSymbol::kYear, Kind::kYear);
  set(TextSymbol::kCount, Kind::kCount);
  DrawStream draws({DeriveSeed(seed, RandomPurpose::kText), 1});
  MakeTables(draws);
  MakePairs(draws);
}

void TextModel::MakeTables(DrawStream& draws) {
  for (size_t i = 0; i < kWordClasses; ++i) {
    const std::vector<double> base = ZipfWeights(kClassSizes[i]);
    tables_[i].emplace_back(base);
  }
  for (const WordClass word_class : kTopicalClasses) {
    const size_t size = ClassSize(word_class);
    const std::vector<double> base = ZipfWeights(size), topical = ZipfWeights(size / kTopicPart);
    double base_sum = 0, topical_sum = 0;
    for (const double weight : base) base_sum += weight;
    for (const double weight : topical) topical_sum += weight;
    std::vector<TextTable>& tables = tables_[static_cast<size_t>(word_class)];
    tables.clear();
    for (size_t topic = 0; topic < ClassSize(WordClass::kTopic); ++topic) {
      std::vector<double> weights(size);
      for (size_t k = 0; k < size; ++k) weights[k] = (1 - kTopicShare) * (base[k] / base_sum);
      for (const double weight : topical) {
        weights[draws.Below(static_cast<uint32_t>(size))] += kTopicShare * (weight / topical_sum);
      }
      tables.emplace_back(weights);
    }
  }
}

void TextModel::MakePairs(DrawStream& draws) {
  for (const WordClass word_class : kTopicalClasses) {
    const TextTable table(ZipfWeights(ClassSize(word_class)));
    std::vector<uint16_t>& pairs = pairs_[static_cast<size_t>(word_class)];
    pairs.resize(Contexts() * kPairWords);
    for (uint16_t& word : pairs) word = static_cast<uint16_t>(table.Outcome(draws.Word()));
  }
}

TextState TextModel::Start() {
  TextState state;
  state.pending[0] = TextSymbol::kDocument;
  state.depth = 1;
  return state;
}

const TextTable& TextModel::Table(WordClass word_class, size_t topic) const {
  const std::vector<TextTable>& tables = tables_[static_cast<size_t>(word_class)];
  return tables[tables.size() == 1 ? 0 : topic];
}

const uint16_t* TextModel::Pairs(WordClass word_class, size_t context) const {
  const std::vector<uint16_t>& pairs = pairs_[static_cast<size_t>(word_class)];
  return pairs.empty() || context == 0 ? nullptr : pairs.data() + context * kPairWords;
}

TextModel::Shares TextModel::SharesOf(const TextState& state, WordClass word_class) const {
  const bool echo = word_class == WordClass::kNoun && state.recent_size > 0;
  const bool pair = Pairs(word_class, state.context) != nullptr;
  return {echo ? kEchoParts : 0, pair ? kPairParts : 0};
}

double TextModel::WordProbability(const TextState& state,
                                  WordClass word_class,
                                  size_t index) const {
  const Shares shares = SharesOf(state, word_class);
  double parts = (kParts - shares.echo - shares.pair) *
                 (Table(word_class, state.topic).Weight(index) * (1.0 / TextTable::kTotal));
  if (shares.echo != 0) {
    const auto end = state.recent.begin() + static_cast<ptrdiff_t>(state.recent_size);
    const auto hits = std::count(state.recent.begin(), end, index);
    parts += shares.echo * static_cast<double>(hits) / static_cast<double>(state.recent_size);
  }
  if (shares.pair != 0) {
    const uint16_t* const pairs = Pairs(word_class, state.context);
    uint32_t hits = 0;
    for (size_t k = 0; k < kPairWords; ++k) hits += pairs[k] == index ? kRankParts[k] : 0;
    parts += shares.pair * static_cast<double>(hits) / RankTotal(kPairWords);
  }
  return parts / kParts;
}

size_t TextModel::DrawWord(const TextState& state, WordClass word_class, DrawStream& draws) const {
  const Shares shares = SharesOf(state, word_class);
  const uint32_t part = shares.echo + shares.pair == 0 ? ~0u : DrawPart(draws);
  if (part < shares.echo) {
    return state.recent[draws.Below(static_cast<uint32_t>(state.recent_size))];
  }
  if (part < shares.echo + shares.pair) {
    return Pairs(word_class, state.context)[DrawRank(kPairWords, draws)];
  }
  return Table(word_class, state.topic).Outcome(draws.Word());
}

size_t TextModel::Alternatives(const TextState& state) const {
  const Symbol& symbol = Top(state);
  switch (symbol.kind) {
    case Kind::kRule:
      return symbol.rules.size();
    case Kind::kWord:
      return ClassSize(symbol.word.word_class);
    case Kind::kMark:
      return 1;
    case Kind::kNewName:
    case Kind::kName:
      return kNames;
    case Kind::kTitleYear:
    case Kind::kYear:
      return kYears;
    case Kind::kCount:
      return kCounts;
  }
  return 0;
}

double TextModel::Probability(const TextState& state, size_t alternative) const {
  const Symbol& symbol = Top(state);
  switch (symbol.kind) {
    case Kind::kRule:
      return symbol.rules[alternative].weight / static_cast<double>(kRuleTotal);
    case Kind::kWord:
      return WordProbability(state, symbol.word.word_class, alternative);
    case Kind::kMark:
      return 1;
    case Kind::kNewName:
      return 1.0 / kNames;
    case Kind::kName:
      return NameProbability(state, static_cast<uint32_t>(alternative));
    case Kind::kTitleYear:
      return 1.0 / kYears;
    case Kind::kYear:
      return YearProbability(state, static_cast<uint32_t>(alternative));
    case Kind::kCount:
      return counts_.Weight(alternative) * (1.0 / TextTable::kTotal);
  }
  return 0;
}

size_t TextModel::Draw(const TextState& state, DrawStream& draws) const {
  const Symbol& symbol = Top(state);
  switch (symbol.kind) {
    case Kind::kRule: {
      if (symbol.rules.size() == 1) return 0;
      uint32_t part = DrawPart(draws);
      size_t rule = 0;
      while (part >= symbol.rules[rule].weight) part -= symbol.rules[rule++].weight;
      return rule;
    }
    case Kind::kWord:
      return DrawWord(state, symbol.word.word_class, draws);
    case Kind::kMark:
      return 0;
    case Kind::kNewName:
      return draws.Below(kNames);
    case Kind::kName:
      if (DrawPart(draws) >= kCastParts) return draws.Below(kNames);
      return state.cast[DrawRank(state.cast_size, draws)];
    case Kind::kTitleYear:
      return draws.Below(kYears);
    case Kind::kYear:
      return DrawPart(draws) < kTitleYearParts ? state.year : draws.Below(kYears);
    case Kind::kCount:
      return counts_.Outcome(draws.Word());
  }
  return 0;
}

void TextModel::TakeRule(TextState& state, const TextRule& rule) const {
  if (rule.left == TextSymbol::kDocument) {
    state.cast_size = state.recent_size = state.recent_next = 0;
  }
  for (size_t i = rule.right.size(); i-- > 0;) {
    if (rule.right[i] == TextSymbol::kNone) continue;
    NUMSIM_CHECK(state.depth < state.pending.size(), "{} symbols", state.depth);
    state.pending[state.depth++] = rule.right[i];
  }
}

void TextModel::TakeWord(TextState& state,
                         const TextWord& word,
                         size_t index,
                         std::string& text) const {
  AppendUnit(state, lexicon_.Stem(word.word_class, index), text);
  text += word.ending;
  if (word.word_class == WordClass::kTopic) state.topic = index;
  if (word.word_class == WordClass::kNoun) {
    state.recent[state.recent_next] = static_cast<uint16_t>(index);
    state.recent_next = (state.recent_next + 1) % kTextRecent;
    state.recent_size = std::min(state.recent_size + 1, kTextRecent);
  }
  if (const size_t context = ContextOf(word.word_class, index)) state.context = context;
}

void TextModel::Take(TextState& state, size_t alternative, std::string& text) const {
  const Symbol& symbol = Top(state);
  const auto number = static_cast<uint32_t>(alternative);
  --state.depth;
  switch (symbol.kind) {
    case Kind::kRule:
      return TakeRule(state, symbol.rules[alternative]);
    case Kind::kWord:
      return TakeWord(state, symbol.word, alternative, text);
    case Kind::kMark:
      text += symbol.mark.text;
      state.space = symbol.mark.space;
      state.capital = symbol.mark.capital;
      if (symbol.mark.capital) state.context = 0;
      return;
    case Kind::kNewName:
      state.cast[state.cast_size++] = number;
      return AppendUnit(state, NameText(number), text);
    case Kind::kName:
      return AppendUnit(state, NameText(number), text);
    case Kind::kTitleYear:
      state.year = number;
      return AppendUnit(state, fmt::format("{}", kFirstYear + number), text);
    case Kind::kYear:
      return AppendUnit(state, fmt::format("{}", kFirstYear + number), text);
    case Kind::kCount:
      return AppendUnit(state, fmt::format("{}", kFirstCount + number), text);
  }
}

}  // namespace numsim
