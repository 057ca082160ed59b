#include "numsim/data/internal/generate_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "tests/reference/data/text_oracle.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

uint64_t Fnv(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3u;
  return hash;
}

GeneratedText Generate(uint64_t seed, uint64_t part, size_t bytes) {
  return GenerateText(TextModel(seed), seed, part, bytes);
}

TEST(GenerateText, BytesStayWhatTheyAre) {
  const GeneratedText text = Generate(0, 0, 100000);
  EXPECT_EQ(Fnv(text.text), 6040191079472603740u);
  EXPECT_NEAR(text.nats / 1e5, 0.69, 0.02);
}

TEST(GenerateText, FewerBytesAreTheBeginningOfMore) {
  const GeneratedText more = Generate(1, 0, 5000);
  double nats = 0;
  for (const size_t bytes : {1, 2, 100, 4321}) {
    const GeneratedText fewer = Generate(1, 0, bytes);
    ASSERT_EQ(fewer.text, more.text.substr(0, bytes));
    EXPECT_GE(fewer.nats, nats);
    nats = fewer.nats;
  }
  EXPECT_LT(nats, more.nats);
  EXPECT_EQ(Generate(1, 0, 0).text, "");
}

TEST(GenerateText, SeedAndPartMakeOtherTexts) {
  EXPECT_NE(Generate(1, 0, 1000).text, Generate(1, 1, 1000).text);
  EXPECT_NE(Generate(1, 0, 1000).text, Generate(2, 0, 1000).text);
}

// The text up to the last whole sentence, and its nats.
GeneratedText WholeSentences(const TextModel& model, uint64_t seed, size_t bytes) {
  const GeneratedText text = GenerateText(model, seed, 1, bytes);
  return GenerateText(model, seed, 1, text.text.rfind(". ") + 1);
}

TEST(GenerateText, NatsAreThoseOfAnOracleThatSeesTheTextAlone) {
  for (const uint64_t seed : {0, 5}) {
    const TextModel model(seed);
    const GeneratedText text = WholeSentences(model, seed, 12000 / SampleEvery(3));
    size_t most = 0;
    const double oracle = TextOracle(model).Nats(text.text, &most);
    // Sums of some 10^4 terms; a second derivation of any sentence would show.
    EXPECT_NEAR(oracle, text.nats, 1e-6 * text.nats);
    EXPECT_LT(most, 64u);
  }
}

TEST(GenerateText, ACutSentenceIsNotCounted) {
  const TextModel model(2);
  const TextOracle oracle(model);
  for (size_t bytes = 1; bytes < 400; bytes += bytes < 20 ? 1 : 7 * SampleEvery(3)) {
    const GeneratedText text = GenerateText(model, 2, 0, bytes);
    const double exact = oracle.Nats(text.text);
    EXPECT_LE(text.nats, exact + 1e-9) << bytes;
    EXPECT_GE(text.nats, exact - 150) << bytes;
  }
}

// Mean loss in nats a byte on `test` of counts of `order` bytes of context and fewer, mixed by the
// rule of Witten and Bell: what is new in a context counts as often as it has been new so far.
double CountingLoss(const std::string& train, const std::string& test, size_t order) {
  struct Context {
    std::map<char, uint32_t> counts;
    uint32_t total = 0;
  };
  std::vector<std::unordered_map<std::string, Context>> contexts(order + 1);
  for (size_t i = order; i < train.size(); ++i) {
    for (size_t k = 0; k <= order; ++k) {
      Context& context = contexts[k][train.substr(i - k, k)];
      ++context.counts[train[i]];
      ++context.total;
    }
  }
  double nats = 0;
  for (size_t i = order; i < test.size(); ++i) {
    double p = 1.0 / 256;
    for (size_t k = 0; k <= order; ++k) {
      const auto found = contexts[k].find(test.substr(i - k, k));
      if (found == contexts[k].end()) break;
      const Context& context = found->second;
      const auto count = context.counts.find(test[i]);
      const double kinds = static_cast<double>(context.counts.size());
      const double seen = count == context.counts.end() ? 0 : count->second;
      p = (seen + kinds * p) / (context.total + kinds);
    }
    nats -= std::log(p);
  }
  return nats / static_cast<double>(test.size() - order);
}

TEST(GenerateText, SimpleModelsStayAboveTheBound) {
  const TextModel model(0);
  const std::string train = GenerateText(model, 0, 0, 300000).text;
  const GeneratedText valid = GenerateText(model, 0, 1, 30000);
  const double bound = valid.nats / static_cast<double>(valid.text.size());
  EXPECT_GT(bound, 0.6);
  EXPECT_LT(bound, 0.8);
  double last = std::log(256.0);
  for (const size_t order : {0, 1, 2, 4}) {
    const double loss = CountingLoss(train, valid.text, order);
    EXPECT_LT(loss, last - 0.15) << order;  // each is worth something
    EXPECT_GT(loss, bound + 0.5) << order;
    last = loss;
  }
}

// Words of five letters and more, of each document's sentences.
std::vector<std::vector<std::vector<std::string>>> LongWords(const std::string& text) {
  std::vector<std::vector<std::vector<std::string>>> documents;
  for (size_t begin = text.find("= "); begin < text.size();) {
    size_t end = text.find("\n\n", begin);
    end = end == std::string::npos ? text.size() : end;
    std::vector<std::vector<std::string>> sentences(1);
    std::string word;
    for (size_t i = text.find('\n', begin); i < end; ++i) {
      const char c = text[i];
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        continue;
      }
      if (word.size() >= 5) sentences.back().push_back(word);
      word.clear();
      if (c == '.') sentences.emplace_back();
    }
    documents.push_back(sentences);
    begin = end == text.size() ? end : end + 2;
  }
  return documents;
}

// ln of how much likelier the words of `target` are by the counts of all text mixed with a tenth of
// the words of `memory`, each, a word.
double GainOf(const std::map<std::string, double>& shares,
              const std::vector<std::string>& memory,
              const std::vector<std::string>& target) {
  double gain = 0;
  for (const std::string& word : target) {
    const double share = shares.at(word);
    const auto hits = static_cast<double>(std::count(memory.begin(), memory.end(), word));
    gain += std::log((0.9 * share + 0.1 * hits / static_cast<double>(memory.size())) / share);
  }
  return gain;
}

TEST(GenerateText, WordsTellOfSentencesFarAway) {
  const auto documents = LongWords(Generate(0, 0, 300000).text);
  ASSERT_GT(documents.size(), 100u);
  std::map<std::string, double> shares;
  double words = 0;
  for (const auto& document : documents) {
    for (const auto& sentence : document) {
      for (const std::string& word : sentence) ++shares[word], ++words;
    }
  }
  for (auto& [word, share] : shares) share /= words;
  // A gain over the counts is a lower bound of the mutual information, in nats a word.
  double own = 0, other = 0, count = 0;
  for (size_t d = 1; d < documents.size(); ++d) {
    for (size_t s = 5; s < documents[d].size(); ++s) {
      const auto& far = documents[d][s - 5];
      const auto& foreign = documents[d - 1][0];
      if (far.empty() || foreign.empty()) continue;
      own += GainOf(shares, far, documents[d][s]);
      other += GainOf(shares, foreign, documents[d][s]);
      count += static_cast<double>(documents[d][s].size());
    }
  }
  EXPECT_GT(own / count, 0.1);
  EXPECT_LT(other / count, 0.02);
}

TEST(GenerateText, BytesAndWordsHaveARareTail) {
  const std::string text = Generate(0, 0, 1 << 20).text;
  std::array<size_t, 256> counts{};
  for (const char c : text) ++counts[static_cast<uint8_t>(c)];
  size_t kinds = 0, rare = 0;
  for (const size_t count : counts) {
    kinds += count > 0;
    rare += count > 0 && count < text.size() / 2000;
  }
  EXPECT_GT(kinds, 60u);
  EXPECT_GE(rare, 8u);
  for (int c = 128; c < 256; ++c) EXPECT_EQ(counts[c], 0u);
  std::map<std::string, size_t> words;
  std::string word;
  size_t total = 0;
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else if (!word.empty()) {
      ++words[word];
      ++total;
      word.clear();
    }
  }
  std::vector<size_t> ranked;
  for (const auto& [text_of_word, count] : words) ranked.push_back(count);
  std::sort(ranked.rbegin(), ranked.rend());
  EXPECT_GT(ranked.size(), 3000u);
  EXPECT_GT(ranked[0], total / 50);
  EXPECT_LT(ranked[2000], total / 10000);
}

TEST(GenerateText, QuotesAndBracketsCloseAndQuestionsEnd) {
  const std::string text = Generate(0, 0, 200000).text;
  int quotes = 0, open = 0;
  for (const char c : text) {
    quotes += c == '"';
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    EXPECT_TRUE(open == 0 || open == 1);
    if (c == '\n') {
      EXPECT_EQ(quotes % 2, 0);
    }
  }
  EXPECT_GT(quotes, 100);
  EXPECT_GT(std::count(text.begin(), text.end(), '?'), 100);
  EXPECT_GT(std::count(text.begin(), text.end(), '('), 10);
}

}  // namespace
}  // namespace numsim
