#include "numsim/data/internal/text_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace numsim {
namespace {

TEST(TextTable, WeightsAddUpAndFollowTheProportions) {
  for (const std::vector<double>& weights : {std::vector<double>{1},
                                             {1, 1e-30},
                                             {1e-30, 1},
                                             {3, 2, 1},
                                             ZipfWeights(1200),
                                             std::vector<double>(65536, 1)}) {
    const TextTable table(weights);
    ASSERT_EQ(table.size(), weights.size());
    double sum = 0;
    for (const double weight : weights) sum += weight;
    uint64_t total = 0;
    for (size_t i = 0; i < table.size(); ++i) {
      EXPECT_GE(table.Weight(i), 1u);
      total += table.Weight(i);
      if (i == 0) continue;
      EXPECT_NEAR(
          table.Weight(i), TextTable::kTotal * weights[i] / sum, 1 + 65536.0 / table.size());
    }
    EXPECT_EQ(total, TextTable::kTotal);
  }
}

TEST(TextTable, OutcomesTakeExactlyTheirWeight) {
  const TextTable table(std::vector<double>{5, 1, 3});
  uint32_t first = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(table.Outcome(first << 8), i);
    EXPECT_EQ(table.Outcome((first + table.Weight(i) - 1) << 8 | 0xFF), i);
    first += table.Weight(i);
  }
}

TEST(TextGrammar, ProbabilitiesOfRulesAddUpToOne) {
  for (size_t i = 0; i <= static_cast<size_t>(TextSymbol::kDocumentEnd); ++i) {
    const auto symbol = static_cast<TextSymbol>(i);
    uint32_t total = 0;
    for (const TextRule& rule : RulesOf(symbol)) {
      EXPECT_EQ(rule.left, symbol);
      total += rule.weight;
    }
    EXPECT_TRUE(total == 0 || total == kRuleTotal) << i << ": " << total;
    // A symbol is of one kind.
    EXPECT_LE((total != 0) + WordOf(symbol).has_value() + MarkOf(symbol).has_value(), 1) << i;
  }
}

TEST(Lexicon, NoTwoFormsAreSpelledAlike) {
  for (const uint64_t seed : {0, 1, 2}) {
    const Lexicon lexicon(seed);
    std::set<std::string> forms;
    for (size_t i = 0; i <= static_cast<size_t>(TextSymbol::kDocumentEnd); ++i) {
      const auto word = WordOf(static_cast<TextSymbol>(i));
      if (!word) continue;
      for (size_t k = 0; k < ClassSize(word->word_class); ++k) {
        std::string form(lexicon.Stem(word->word_class, k));
        form += word->ending;
        EXPECT_TRUE(forms.insert(form).second) << form;
        EXPECT_TRUE(std::all_of(form.begin(), form.end(), [](char c) {
          return c >= 'a' && c <= 'z';
        })) << form;
        EXPECT_NE(form.back(), 'o') << form;  // as names
      }
    }
  }
}

TEST(Lexicon, NamesAreSpelledApart) {
  std::set<std::string> names;
  for (uint32_t name = 0; name < kNames; ++name) {
    const std::string text = NameText(name);
    ASSERT_EQ(text.size(), 6u);
    ASSERT_EQ(text.back(), 'o');
    names.insert(text);
  }
  EXPECT_EQ(names.size(), kNames);
}

TEST(Lexicon, SeedsHaveOtherWords) {
  EXPECT_NE(Lexicon(1).Stem(WordClass::kNoun, 300), Lexicon(2).Stem(WordClass::kNoun, 300));
}

// Entropy and variance of -ln p of the choice at hand.
struct Expected {
  double sum = 0, mean = 0, variance = 0;
};
Expected ExpectedOf(const TextModel& model, const TextState& state) {
  Expected e;
  double squares = 0;
  for (size_t i = 0; i < model.Alternatives(state); ++i) {
    const double p = model.Probability(state, i);
    EXPECT_GT(p, 0);
    const double nats = -std::log(p);
    e.sum += p;
    e.mean += p * nats;
    squares += p * nats * nats;
  }
  e.variance = std::max(0.0, squares - e.mean * e.mean);
  return e;
}

TEST(TextModel, ProbabilitiesOfEveryChoiceAddUpToOneAndDrawsFollowThem) {
  const TextModel model(3);
  DrawStream draws({99, 0});
  TextState state = TextModel::Start();
  std::string text;
  // Per symbol: the sum of -ln p of what was drawn less its expectation, and its variance.
  std::map<TextSymbol, std::pair<double, double>> surplus;
  while (text.size() < 20000) {
    const Expected e = ExpectedOf(model, state);
    ASSERT_NEAR(e.sum, 1, 1e-9) << static_cast<int>(state.Top());
    const size_t choice = model.Draw(state, draws);
    auto& [sum, variance] = surplus[state.Top()];
    sum += -std::log(model.Probability(state, choice)) - e.mean;
    variance += e.variance;
    model.Take(state, choice, text);
  }
  for (const auto& [symbol, s] : surplus) {
    EXPECT_LE(std::abs(s.first), 4.5 * std::sqrt(s.second) + 1e-6) << static_cast<int>(symbol);
  }
}

TEST(TextModel, FrequenciesOfDrawsAreTheProbabilities) {
  const TextModel model(4);
  DrawStream draws({1, 0});
  TextState state = TextModel::Start();
  std::string text;
  std::set<TextSymbol> seen;
  while (text.size() < 6000) {
    // Each kind of choice twice: early in the document, and late.
    const bool late = text.size() > 3000;
    if (text.size() < 300 || late) {
      if (model.Alternatives(state) > 1 &&
          (late ? seen.erase(state.Top()) == 1 : seen.insert(state.Top()).second)) {
        constexpr double kDraws = 4000;
        std::map<size_t, double> counts;
        for (int i = 0; i < kDraws; ++i) ++counts[model.Draw(state, draws)];
        for (const auto& [choice, count] : counts) {
          ASSERT_LT(choice, model.Alternatives(state));
          const double p = model.Probability(state, choice);
          const double deviation = std::sqrt(kDraws * p * (1 - p));
          EXPECT_NEAR(count, kDraws * p, 5 * deviation + 3) << static_cast<int>(state.Top());
        }
      }
    }
    model.Take(state, model.Draw(state, draws), text);
  }
}

}  // namespace
}  // namespace numsim
