#include <set>
#include <thread>

#include "numsim/data/internal/generate_text.h"
#include "numsim/data/internal/sources.h"
#include "tests/data/data_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

// Any two bytes in a row occur once, in up to some 60 KB.
std::string Counting(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i % 251 ^ i / 251);
  return text;
}

TextSource Source(size_t train = 1000, size_t valid = 100) {
  return {"counting", Counting(train), Counting(valid), std::nullopt};
}

TEST(TextSource, TargetsFollowTokens) {
  const TextSource source = Source();
  Batch batch;
  source.TrainBatch(1, 0, 5, 16, batch);
  EXPECT_EQ(batch.examples, 5u);
  EXPECT_EQ(batch.length, 16u);
  ASSERT_EQ(batch.tokens.size(), 80u);
  ASSERT_EQ(batch.targets.size(), 80u);
  EXPECT_TRUE(batch.values.empty() && batch.ends.empty() && batch.concepts.empty());
  for (size_t i = 0; i < 80; ++i) {
    if (i % 16 != 15) {
      EXPECT_EQ(batch.targets[i], batch.tokens[i + 1]);
    }
  }
}

// The places in the text at which the sequences of a batch begin. Pairs of bytes are unique.
std::vector<size_t> Places(const std::string& text, const Batch& batch) {
  std::vector<size_t> places;
  for (size_t e = 0; e < batch.examples; ++e) {
    std::string sequence;
    for (size_t i = 0; i < batch.length; ++i) {
      sequence += static_cast<char>(batch.tokens[e * batch.length + i]);
    }
    sequence += static_cast<char>(batch.targets[(e + 1) * batch.length - 1]);
    places.push_back(text.find(sequence));
    EXPECT_NE(places.back(), std::string::npos);
  }
  return places;
}

TEST(TextSource, AnEpochVisitsEverySequenceOnceFromAnOffset) {
  const std::string text = Counting(1000);
  const TextSource source = Source();
  std::set<size_t> offsets;
  std::vector<size_t> last_order;
  for (uint64_t epoch = 0; epoch < 20; ++epoch) {
    ASSERT_EQ(source.TrainBatches(6, 16),
              10u);  // (1000 - 16) / 16 = 61 sequences
    std::vector<size_t> places;
    Batch batch;
    for (uint64_t b = 0; b < 10; ++b) {
      source.TrainBatch(3, epoch * 10 + b, 6, 16, batch);
      for (const size_t place : Places(text, batch)) places.push_back(place);
    }
    EXPECT_NE(places, last_order);
    last_order = places;
    std::sort(places.begin(), places.end());
    for (size_t i = 0; i + 1 < places.size(); ++i) {
      const size_t step = places[i + 1] - places[i];
      EXPECT_TRUE(step == 16 || step == 32) << step;  // one of 61 is left out
    }
    offsets.insert(places[0] % 16);
  }
  EXPECT_GT(offsets.size(), 8u);
}

TEST(TextSource, ABatchDependsOnSeedAndIndexAlone) {
  const TextSource source = Source(5000);
  std::vector<Batch> forward(40);
  for (uint64_t i = 0; i < 40; ++i) source.TrainBatch(9, i, 7, 32, forward[i]);
  Batch batch;
  for (uint64_t i = 40; i-- > 0;) {
    source.ValidBatch(0, 2, 10, batch);
    source.TrainBatch(9, i, 7, 32, batch);
    EXPECT_EQ(batch.tokens, forward[i].tokens);
  }
  source.TrainBatch(10, 0, 7, 32, batch);
  EXPECT_NE(batch.tokens, forward[0].tokens);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&source, &forward, &equal, t] {
      Batch mine;
      for (uint64_t i = 0; i < 40; ++i) {
        const uint64_t index = (i * (2 * t + 1)) % 40;
        source.TrainBatch(9, index, 7, 32, mine);
        equal[t] += mine.tokens == forward[index].tokens && mine.targets == forward[index].targets;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::vector<int>{40, 40, 40, 40}));
}

TEST(TextSource, ValidationIsInOrderAndLeavesOutTheRest) {
  const TextSource source = Source(100, 100);
  EXPECT_EQ(source.ValidBatches(3, 8), 4u);  // 99 / 8 = 12 sequences
  EXPECT_EQ(source.ValidBatches(1, 99), 1u);
  EXPECT_EQ(source.ValidBatches(1, 100), 0u);
  Batch batch;
  for (uint64_t b = 0; b < 4; ++b) {
    source.ValidBatch(b, 3, 8, batch);
    EXPECT_EQ(Places(Counting(100), batch), (std::vector<size_t>{24 * b, 24 * b + 8, 24 * b + 16}));
  }
}

TEST(TextSource, TheSmallestTextThatServes) {
  Batch batch;
  EXPECT_EQ(Source(16).TrainBatches(1, 8), 1u);
  EXPECT_EQ(Source(15).TrainBatches(1, 8), 0u);
  EXPECT_EQ(Source(3).TrainBatches(1, 8), 0u);
  for (uint64_t epoch = 0; epoch < 50; ++epoch) Source(16).TrainBatch(1, epoch, 1, 8, batch);
}

using OpenTextTest = IoTest;

DataConfig TextConfig(const std::filesystem::path& path) {
  DataConfig config;
  config.kind = DataKind::kText;
  config.path = path;
  return config;
}

TEST_F(OpenTextTest, TheLastShareIsForValidation) {
  const auto source = OpenData(TextConfig(Put("abc.txt", "0123456789abcdefghi-")));
  EXPECT_EQ(source->shape().train_examples, 18u);
  EXPECT_EQ(source->shape().valid_examples, 2u);
  EXPECT_EQ(source->shape().vocabulary, 256u);
  EXPECT_EQ(source->shape().length, 0u);
  EXPECT_EQ(source->EntropyBound(), std::nullopt);
  EXPECT_EQ(source->Describe(), "20 bytes of abc.txt, 18 for training, 2 for validation");
  Batch batch;
  source->ValidBatch(0, 1, 1, batch);
  EXPECT_EQ(batch.tokens, std::vector<int32_t>{'i'});
  EXPECT_EQ(batch.targets, std::vector<int32_t>{'-'});
}

TEST_F(OpenTextTest, TheCutIsBetweenCharacters) {
  DataConfig config = TextConfig(Put("abc.txt", "abcd\xF0\x9F\x98\x80zz"));
  config.valid_share = 0.5;  // byte 5 of 10
  EXPECT_EQ(OpenData(config)->shape().train_examples, 8u);
}

TEST_F(OpenTextTest, ASecondFileIsForValidation) {
  DataConfig config = TextConfig(Put("a.txt", "abcdef"));
  config.valid_path = Put("b.txt", "xyz");
  const auto source = OpenData(config);
  EXPECT_EQ(source->shape().train_examples, 6u);
  EXPECT_EQ(source->shape().valid_examples, 3u);
  EXPECT_THAT(source->Describe(), HasSubstr("a.txt and b.txt"));
}

TEST_F(OpenTextTest, NamesTheFileAtFault) {
  const auto message = [](DataConfig config) { return ErrorOf([&] { OpenData(config); }); };
  for (const std::string text : {"", "a", "ab", "abc"}) {
    ExpectMessage(message(TextConfig(Put("short.txt", text))), {Path("short.txt").string()});
  }
  ExpectMessage(message(TextConfig(Path("absent"))), {Path("absent").string()});
  ExpectMessage(message(TextConfig(Put("l1.txt", "caf\xE9 au lait"))),
                {Path("l1.txt").string(), "offset 3"});
  DataConfig config = TextConfig(Put("a.txt", "abcdef"));
  config.valid_path = Put("b.txt", "x");
  ExpectMessage(message(config), {Path("b.txt").string(), "1 bytes for validation", "2 or more"});
}

TEST(OpenGeneratedText, SplitsBySizeAndKnowsItsBound) {
  DataConfig config;
  config.size = 50000;
  config.seed = 3;
  const auto source = OpenData(config);
  EXPECT_EQ(source->shape().train_examples, 45000u);
  EXPECT_EQ(source->shape().valid_examples, 5000u);
  const GeneratedText valid = GenerateText(TextModel(3), 3, 1, 5000);
  ASSERT_TRUE(source->EntropyBound().has_value());
  EXPECT_DOUBLE_EQ(*source->EntropyBound(), valid.nats / 5000);
  Batch batch;
  source->ValidBatch(0, 1, 4999, batch);
  for (size_t i = 0; i < 4999; ++i) ASSERT_EQ(batch.tokens[i], valid.text[i]);
}

}  // namespace
}  // namespace numsim
