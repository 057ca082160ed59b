#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "numsim/data/internal/sources.h"
#include "tests/data/caption_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

// Image i is of one pixel of one channel, of level i; its caption is the concept's number.
CaptionSet Numbered(const std::vector<int32_t>& concepts) {
  CaptionSet set{concepts.size(), 1, 1, 1, {}, {}, concepts};
  for (size_t i = 0; i < concepts.size(); ++i) {
    set.pixels.push_back(static_cast<uint8_t>(i));
    set.captions.push_back("number " + std::to_string(concepts[i]));
  }
  return set;
}

std::vector<int32_t> ThreeOfEach(int32_t concepts) {
  std::vector<int32_t> numbers;
  for (int32_t i = 0; i < 3 * concepts; ++i) numbers.push_back(i % concepts);
  return numbers;
}

std::string CaptionOf(const Batch& batch, size_t example) {
  std::string text;
  for (int32_t i = 1; i < batch.ends[example]; ++i) {
    text += static_cast<char>(batch.tokens[example * batch.length + static_cast<size_t>(i)]);
  }
  return text;
}

TEST(CaptionSource, CaptionsStandBetweenStartAndEnd) {
  CaptionSet set = Numbered({0, 1});
  set.captions = {"ab", "\xC3\xA4xyz"};
  const CaptionSource source("two", set, Numbered({5}), true);
  EXPECT_EQ(source.shape().length, 10u);  // "number 5" and two
  EXPECT_EQ(source.shape().vocabulary, 259u);
  Batch batch;
  batch.targets = {1, 2, 3};
  source.TrainBatch(1, 0, 2, 0, batch);
  EXPECT_TRUE(batch.targets.empty());
  EXPECT_EQ(batch.length, 10u);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<int32_t> tokens(batch.tokens.begin() + static_cast<ptrdiff_t>(10 * i),
                                      batch.tokens.begin() + static_cast<ptrdiff_t>(10 * i + 10));
    if (batch.concepts[i] == 0) {
      EXPECT_EQ(tokens, (std::vector<int32_t>{256, 'a', 'b', 257, 258, 258, 258, 258, 258, 258}));
      EXPECT_EQ(batch.ends[i], 3);
      EXPECT_EQ(batch.values[i],
                -1.0f);  // levels 0 and 1: mean and deviation 1/2
    } else {
      EXPECT_EQ(tokens, (std::vector<int32_t>{256, 0xC3, 0xA4, 'x', 'y', 'z', 257, 258, 258, 258}));
      EXPECT_EQ(batch.ends[i], 6);
      EXPECT_EQ(batch.values[i], 1.0f);
    }
  }
}

TEST(CaptionSource, LongCaptionsAreCutBetweenCharacters) {
  const std::string euro = "\xE2\x82\xAC";
  EXPECT_EQ(KeptCaption(std::string(75, 'a')).size(), 75u);
  EXPECT_EQ(KeptCaption(std::string(76, 'a')).size(), 75u);
  EXPECT_EQ(KeptCaption(std::string(74, 'a') + euro).size(), 74u);
  EXPECT_EQ(KeptCaption(std::string(73, 'a') + euro).size(), 73u);
  EXPECT_EQ(KeptCaption(std::string(72, 'a') + euro).size(), 75u);
  EXPECT_EQ(KeptCaption(std::string(72, 'a') + euro + "b").size(), 75u);
  CaptionSet set = Numbered({0, 1});
  set.captions[1] = std::string(500, 'a');
  const CaptionSource source("long", set, Numbered({0}), false);
  EXPECT_EQ(source.shape().length, kMaxCaptionTokens);
  Batch batch;
  source.TrainBatch(1, 0, 2, 0, batch);
  EXPECT_EQ(*std::max_element(batch.ends.begin(), batch.ends.end()), 76);
}

TEST(CaptionSource, NoConceptTwiceInABatchAndEveryImageOnceAnEpoch) {
  const CaptionSource source("numbers", Numbered(ThreeOfEach(40)), Numbered({0}), true);
  ASSERT_EQ(source.TrainBatches(30, 0), 4u);
  std::set<std::vector<float>> orders;
  Batch batch;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    std::vector<float> values;
    for (uint64_t b = 0; b < 4; ++b) {
      source.TrainBatch(1, 4 * epoch + b, 30, 0, batch);
      EXPECT_EQ(std::set<int32_t>(batch.concepts.begin(), batch.concepts.end()).size(), 30u);
      for (size_t i = 0; i < 30; ++i) {
        EXPECT_EQ(CaptionOf(batch, i), "number " + std::to_string(batch.concepts[i]));
      }
      values.insert(values.end(), batch.values.begin(), batch.values.end());
    }
    orders.insert(values);
    EXPECT_EQ(std::set<float>(values.begin(), values.end()).size(), 120u);
  }
  EXPECT_EQ(orders.size(), 10u);
}

TEST(CaptionSource, WithoutTheRuleConceptsMeet) {
  const CaptionSource source("numbers", Numbered(ThreeOfEach(10)), Numbered({0}), false);
  ASSERT_EQ(source.TrainBatches(15, 0), 2u);
  bool twice = false;
  std::set<float> values;
  Batch batch;
  for (uint64_t b = 0; b < 2; ++b) {
    source.TrainBatch(1, b, 15, 0, batch);
    twice |= std::set<int32_t>(batch.concepts.begin(), batch.concepts.end()).size() < 15;
    values.insert(batch.values.begin(), batch.values.end());
  }
  EXPECT_TRUE(twice);
  EXPECT_EQ(values.size(), 30u);
}

TEST(CaptionSource, ABatchDependsOnSeedAndIndexAlone) {
  const CaptionSource source("numbers", Numbered(ThreeOfEach(40)), Numbered({0}), true);
  std::vector<Batch> forward(80);  // 20 epochs: more than are kept
  for (uint64_t i = 0; i < 80; ++i) source.TrainBatch(1, i, 30, 0, forward[i]);
  Batch batch;
  for (uint64_t i = 80; i-- > 0;) {
    source.TrainBatch(2, i, 30, 0, batch);
    EXPECT_NE(batch.values, forward[i].values);
    source.TrainBatch(1, i, 20, 0, batch);
    source.TrainBatch(1, i, 30, 0, batch);
    EXPECT_EQ(batch.values, forward[i].values);
  }
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&source, &forward, &equal, t] {
      Batch mine;
      for (uint64_t i = 0; i < 80; ++i) {
        const uint64_t index = i * (2 * t + 3) % 80;
        source.TrainBatch(1, index, 30, 0, mine);
        equal[t] += mine.values == forward[index].values && mine.tokens == forward[index].tokens;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, (std::vector<int>{80, 80, 80, 80}));
}

using OpenCaptionsTest = CaptionTest;

DataConfig CaptionConfig(const std::filesystem::path& path) {
  DataConfig config;
  config.kind = DataKind::kCaptions;
  config.path = path;
  return config;
}

TEST_F(OpenCaptionsTest, AShareOfTheConceptsIsForValidation) {
  PutImages("i.npy", {60, 1, 1, 3});
  std::string captions;
  for (int i = 0; i < 60; ++i) captions += "c" + std::to_string(i / 3) + "\n";
  Put("captions.txt", captions);
  DataConfig config = CaptionConfig(Directory());
  config.valid_share = 0.25;
  std::set<std::set<std::string>> splits;
  for (config.seed = 0; config.seed < 5; ++config.seed) {
    const auto source = OpenData(config);
    EXPECT_EQ(source->shape().train_examples, 45u);
    EXPECT_EQ(source->shape().valid_examples, 15u);
    Batch batch;
    std::set<std::string> train, valid;
    for (size_t i = 0; i < 45; ++i) {
      source->TrainBatch(0, i, 1, 0, batch);
      train.insert(CaptionOf(batch, 0));
    }
    for (size_t i = 0; i < 15; ++i) {
      source->ValidBatch(i, 1, 0, batch);
      valid.insert(CaptionOf(batch, 0));
    }
    EXPECT_EQ(train.size(), 15u);
    EXPECT_EQ(valid.size(), 5u);
    for (const std::string& caption : valid) EXPECT_EQ(train.count(caption), 0u);
    splits.insert(valid);
  }
  EXPECT_GT(splits.size(), 3u);
}

TEST_F(OpenCaptionsTest, TheColumnSplitDecides) {
  PutImages("i.npy", {3, 1, 1, 1});
  Put("captions.txt", "x\ny\nz\n");
  Put("meta.tsv", "split\nvalid\ntrain\nvalid\n");
  const auto source = OpenData(CaptionConfig(Directory()));
  Batch batch;
  source->TrainBatch(0, 0, 1, 0, batch);
  EXPECT_EQ(CaptionOf(batch, 0), "y");
  source->ValidBatch(0, 2, 0, batch);
  EXPECT_EQ(CaptionOf(batch, 0) + CaptionOf(batch, 1), "xz");
  Put("meta.tsv", "split\ntrain\ntrain\ntrain\n");
  ExpectMessage(ErrorOf([&] { OpenData(CaptionConfig(Directory())); }),
                {Directory().string(), "0 of 3 images", "column split"});
}

TEST_F(OpenCaptionsTest, OneConceptCannotBeSplit) {
  PutImages("i.npy", {3, 1, 1, 1});
  Put("captions.txt", "x\nx\nx\n");
  ExpectMessage(ErrorOf([&] { OpenData(CaptionConfig(Directory())); }),
                {Directory().string(), "0 of 3 images are for validation"});
}

TEST_F(OpenCaptionsTest, ASecondFolderIsForValidation) {
  PutImages("i.npy", {2, 1, 1, 3});
  Put("captions.txt", "x\ny\n");
  DataConfig config = CaptionConfig(Directory());
  config.valid_path = Path("second");
  std::filesystem::create_directories(config.valid_path);
  PutImages("second/i.npy", {1, 1, 1, 3});
  Put("second/captions.txt", "a longer caption\n");
  const auto source = OpenData(config);
  EXPECT_EQ(source->shape().train_examples, 2u);
  EXPECT_EQ(source->shape().valid_examples, 1u);
  EXPECT_EQ(source->shape().length, 18u);
  PutImages("second/i.npy", {1, 3, 1, 1});
  ExpectMessage(ErrorOf([&] { OpenData(config); }),
                {Path("second").string(), "3 x 1 x 1", "expected 1 x 1 x 3"});
}

}  // namespace
}  // namespace numsim
