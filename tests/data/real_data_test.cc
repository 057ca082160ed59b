// Tests on real data, where the caller has any.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "numsim/data/source.h"
#include "tests/data/data_fixture.h"

namespace numsim {
namespace {

// A file or folder of NUMSIM_DATA_DIR; empty when there is none.
std::filesystem::path RealData(const char* name) {
  const char* const data = std::getenv("NUMSIM_DATA_DIR");
  if (data == nullptr) return {};
  const auto path = std::filesystem::path(data) / name;
  return std::filesystem::exists(path) ? path : std::filesystem::path();
}

#define NUMSIM_NEED_DATA(path, name)                 \
  const std::filesystem::path path = RealData(name); \
  if (path.empty()) GTEST_SKIP() << "NUMSIM_DATA_DIR has no " << name

std::unique_ptr<const DataSource> Open(DataKind kind, const std::filesystem::path& path) {
  DataConfig config;
  config.kind = kind;
  config.path = path;
  return OpenData(config);
}

void ExpectNormalised(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.1);
  EXPECT_NEAR(std::sqrt(squares / n), 1, 0.1);
}

TEST(RealText, TinyShakespeareIsSplitAsUsual) {
  NUMSIM_NEED_DATA(path, "text/tinyshakespeare.txt");
  const auto source = Open(DataKind::kText, path);
  EXPECT_EQ(source->Describe(),
            "1115394 bytes of tinyshakespeare.txt, 1003854 "
            "for training, 111540 for validation");
  Batch batch;
  source->ValidBatch(0, 1, 10, batch);
  EXPECT_EQ(std::string(batch.tokens.begin(), batch.tokens.end()), "?\n\nGREMIO:");
}

TEST(RealText, BooksInUtf8) {
  NUMSIM_NEED_DATA(path, "text/se-books-valid.txt");
  const auto source = Open(DataKind::kText, path);
  EXPECT_EQ(source->shape().train_examples + source->shape().valid_examples, 997661u);
}

TEST(RealImages, FashionMnist) {
  NUMSIM_NEED_DATA(path, "fashion-mnist");
  const auto source = Open(DataKind::kImages, path);
  EXPECT_EQ(source->shape().train_examples, 60000u);
  EXPECT_EQ(source->shape().valid_examples, 10000u);
  EXPECT_EQ(source->shape().height, 28u);
  EXPECT_EQ(source->shape().classes, 10u);
  Batch batch;
  source->TrainBatch(1, 0, 1000, 0, batch);
  ExpectNormalised(batch.values);
  EXPECT_EQ(std::set<int32_t>(batch.targets.begin(), batch.targets.end()).size(), 10u);
}

void CheckCaptions(const std::filesystem::path& path, size_t train, size_t valid, size_t length) {
  const auto source = Open(DataKind::kCaptions, path);
  EXPECT_EQ(source->shape().train_examples, train);
  EXPECT_EQ(source->shape().valid_examples, valid);
  EXPECT_EQ(source->shape().height, 32u);
  EXPECT_EQ(source->shape().channels, 3u);
  EXPECT_EQ(source->shape().length, length);
  const size_t batches = source->TrainBatches(64, 0);
  EXPECT_EQ(batches, train / 64);
  Batch batch;
  std::set<int32_t> trained;
  for (uint64_t b = 0; b < batches; ++b) {
    source->TrainBatch(1, b, 64, 0, batch);
    EXPECT_EQ(std::set<int32_t>(batch.concepts.begin(), batch.concepts.end()).size(), 64u);
    trained.insert(batch.concepts.begin(), batch.concepts.end());
  }
  ExpectNormalised(batch.values);
  for (uint64_t b = 0; b < source->ValidBatches(1, 0); ++b) {
    source->ValidBatch(b, 1, 0, batch);
    EXPECT_EQ(trained.count(batch.concepts[0]), 0u);
  }
}

TEST(RealCaptions, Emoji) {
  NUMSIM_NEED_DATA(path, "emoji");
  CheckCaptions(path, 4614, 501, 46);
}

TEST(RealCaptions, Tiles) {
  NUMSIM_NEED_DATA(path, "tiles");
  CheckCaptions(path, 2555, 269, 45);
}

}  // namespace
}  // namespace numsim
