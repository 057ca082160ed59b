// Tokens with Zipf frequencies, against their definition.
#include "numsim/data/internal/zipf_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "numsim/data/internal/sources.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

TEST(ZipfModel, ProbabilitiesOfTheNextTokenSumToOne) {
  for (const size_t vocabulary : {2, 100, 65536}) {
    const ZipfModel model(3, vocabulary);
    for (const size_t t : {size_t{0}, vocabulary / 2, vocabulary - 1}) {
      double sum = 0;
      for (size_t k = 0; k < vocabulary; ++k) sum += model.Probability(t, k);
      EXPECT_NEAR(sum, 1, 1e-9) << vocabulary << " " << t;
    }
  }
}

TEST(ZipfModel, TokensHaveTheirFrequenciesAndSuccessors) {
  constexpr size_t kVocabulary = 50, kCount = 400'000;
  const ZipfModel model(7, kVocabulary);
  const ZipfTokens text = model.Generate(0, kCount);
  ASSERT_EQ(text.tokens.size(), kCount);
  std::vector<std::vector<double>> counts(kVocabulary, std::vector<double>(kVocabulary));
  std::vector<double> before(kVocabulary);
  for (size_t i = 1; i < kCount; ++i) {
    counts[text.tokens[i - 1]][text.tokens[i]] += 1;
    before[text.tokens[i - 1]] += 1;
  }
  // A chi-squared statistic per pair of tokens has mean 1 and variance about 2.
  double chi_squared = 0, cells = 0;
  for (size_t t = 0; t < kVocabulary; ++t) {
    for (size_t k = 0; k < kVocabulary; ++k) {
      const double expected = before[t] * model.Probability(t, k);
      if (expected < 5) continue;
      chi_squared += (counts[t][k] - expected) * (counts[t][k] - expected) / expected;
      cells += 1;
    }
  }
  EXPECT_GT(cells, 1000);
  EXPECT_NEAR(chi_squared / cells, 1, 5 * std::sqrt(2 / cells));
}

// The bound, from the definition of the frequencies alone: a token that is nobody's successor has
// half its Zipf frequency.
TEST(ZipfModel, HalfOfTheTokensAreDrawnByZipfsLaw) {
  const size_t vocabulary = 1000;
  const ZipfModel model(1, vocabulary);
  double harmonic = 0;
  for (size_t k = 1; k <= vocabulary; ++k) harmonic += 1 / static_cast<double>(k);
  double least = 1;
  for (size_t t = 0; t < vocabulary; ++t) least = std::min(least, model.Probability(t, 9));
  EXPECT_NEAR(least, 0.5 / 10 / harmonic, 1e-12);
}

TEST(ZipfModel, NatsAreTheInformationOfTheTokens) {
  const ZipfModel model(5, 300);
  const ZipfTokens text = model.Generate(2, 1000);
  double nats = 0;
  for (size_t i = 1; i < text.tokens.size(); ++i) {
    nats -= std::log(model.Probability(text.tokens[i - 1], text.tokens[i]));
  }
  EXPECT_NEAR(text.nats, nats, 1e-9);
}

TEST(ZipfModel, ALongerTextBeginsWithTheShorterOne) {
  const ZipfModel model(5, 300);
  const ZipfTokens few = model.Generate(0, 100), many = model.Generate(0, 200);
  EXPECT_TRUE(std::equal(few.tokens.begin(), few.tokens.end(), many.tokens.begin()));
  EXPECT_NE(model.Generate(1, 100).tokens, few.tokens);
  EXPECT_NE(ZipfModel(6, 300).Generate(0, 100).tokens, few.tokens);
}

TEST(ZipfSource, ServesBatchesAndKnowsItsEntropy) {
  DataConfig config;
  config.kind = DataKind::kZipf;
  config.size = 20000;
  config.vocabulary = 5000;
  const auto source = OpenData(config);
  EXPECT_EQ(source->shape().vocabulary, 5000u);
  EXPECT_EQ(source->shape().train_examples, 18000u);
  // Between the entropy of the mixture's smaller part and that of Zipf's law.
  ASSERT_TRUE(source->EntropyBound().has_value());
  EXPECT_GT(*source->EntropyBound(), 2);
  EXPECT_LT(*source->EntropyBound(), 7);
  Batch batch;
  source->TrainBatch(1, 0, 3, 8, batch);
  ASSERT_EQ(batch.tokens.size(), 24u);
  for (size_t i = 0; i + 1 < 8; ++i) EXPECT_EQ(batch.targets[i], batch.tokens[i + 1]);
  EXPECT_NE(source->Describe().find("20000 tokens of Zipf frequencies"), std::string::npos);
  config.vocabulary = 1;
  EXPECT_EQ(ErrorOf([&] { OpenData(config); }), "data.vocabulary: 1, expected 2 .. 65536");
  EXPECT_NE(ErrorOf([&] { source->CheckBatch(500, 64); }).find("tokens of"), std::string::npos);
}

}  // namespace
}  // namespace numsim
