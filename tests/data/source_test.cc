#include "numsim/data/source.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "numsim/data/internal/pixel_values.h"
#include "numsim/data/internal/split.h"
#include "tests/data/data_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr DataKind kKinds[] = {DataKind::kText,
                               DataKind::kGeneratedText,
                               DataKind::kImages,
                               DataKind::kGeneratedImages,
                               DataKind::kCaptions,
                               DataKind::kGeneratedShapes,
                               DataKind::kGaussian};

TEST(DataKind, NamesAreReadBack) {
  for (const DataKind kind : kKinds) EXPECT_EQ(ParseDataKind(ToString(kind)), kind);
  ExpectMessage(ErrorOf([] { ParseDataKind("txt"); }), {"data.kind 'txt'", "generated-text"});
}

TEST(TrainShare, LeavesSomethingForBoth) {
  EXPECT_EQ(TrainShare(1115394, 0.1), 1003854u);
  EXPECT_EQ(TrainShare(10, 0.25), 7u);
  EXPECT_EQ(TrainShare(2, 0.01), 1u);
  EXPECT_EQ(TrainShare(2, 0.99), 1u);
  EXPECT_EQ(TrainShare(100, 0.999), 1u);
  EXPECT_EQ(TrainShare(100, 0.001), 99u);
  EXPECT_EQ(TrainShare(10, 0), 9u);
  EXPECT_EQ(TrainShare(10, 1e-17), 9u);  // 1 - 1e-17 is 1
  EXPECT_EQ(TrainShare(10, 1), 1u);
}

TEST(PixelValues, HaveMeanZeroAndDeviationOneByChannel) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 100; ++i) {
    pixels.push_back(static_cast<uint8_t>(2 * i));
    pixels.push_back(static_cast<uint8_t>(200 + i % 2));
    pixels.push_back(77);
  }
  std::vector<float> values(pixels.size());
  PixelValues(pixels, 3).Write(pixels, values);
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (size_t i = c; i < values.size(); i += 3) {
      const auto value = static_cast<double>(values[i]);
      sum += value;
      squares += value * value;
    }
    EXPECT_NEAR(sum / 100, 0, 1e-6) << c;
    EXPECT_NEAR(squares / 100, c == 2 ? 0 : 1, 1e-5) << c;
  }
}

DataConfig Small(DataKind kind) {
  DataConfig config;
  config.kind = kind;
  config.size = kind == DataKind::kGeneratedText ? 20000 : 200;
  config.image = 16;
  config.classes = 5;
  config.features = 7;
  config.valid_share = 0.2;
  return config;
}

constexpr DataKind kGenerated[] = {DataKind::kGeneratedText,
                                   DataKind::kGeneratedImages,
                                   DataKind::kGeneratedShapes,
                                   DataKind::kGaussian};

TEST(OpenData, ShapesFitBatches) {
  for (const DataKind kind : kGenerated) {
    const auto source = OpenData(Small(kind));
    const DataShape& shape = source->shape();
    Batch batch;
    // Left there by another kind.
    batch.tokens = batch.targets = batch.ends = batch.concepts = {1, 2, 3};
    batch.values = {1, 2, 3};
    source->TrainBatch(1, 3, 8, 24, batch);
    const bool text = kind == DataKind::kGeneratedText;
    const bool captions = kind == DataKind::kGeneratedShapes;
    const size_t length = text ? 24 : shape.length;
    EXPECT_EQ(batch.examples, 8u);
    EXPECT_EQ(batch.length, length);
    EXPECT_EQ(batch.tokens.size(), 8 * length);
    EXPECT_EQ(batch.targets.size(), text ? 8 * length : shape.classes > 0 ? 8 : 0);
    EXPECT_EQ(batch.ends.size(), captions ? 8u : 0u);
    EXPECT_EQ(batch.concepts.size(), captions ? 8u : 0u);
    EXPECT_EQ(batch.values.size(),
              8 * (shape.height * shape.width * shape.channels + shape.features));
    for (const int32_t token : batch.tokens) {
      EXPECT_TRUE(token >= 0 && token < static_cast<int32_t>(shape.vocabulary));
    }
    EXPECT_EQ(source->EntropyBound().has_value(), text);
    EXPECT_FALSE(source->Describe().empty());
    source->CheckBatch(8, 24);
  }
}

TEST(OpenData, EveryExampleOccursOnceAnEpochAndEpochsDiffer) {
  for (const DataKind kind : {DataKind::kGeneratedImages, DataKind::kGaussian}) {
    const auto source = OpenData(Small(kind));
    const uint64_t batches = source->TrainBatches(15, 0);
    ASSERT_EQ(batches, 10u);  // of 160: ten are left out
    std::set<std::vector<float>> first, second, both;
    Batch batch;
    std::vector<float> beginning;
    for (uint64_t b = 0; b < 2 * batches; ++b) {
      source->TrainBatch(4, b, 15, 0, batch);
      const size_t size = batch.values.size() / 15;
      for (size_t i = 0; i < 15; ++i) {
        const auto at = batch.values.begin() + static_cast<ptrdiff_t>(i * size);
        const std::vector<float> example(at, at + static_cast<ptrdiff_t>(size));
        (b < batches ? first : second).insert(example);
        both.insert(example);
      }
      if (b == 0) beginning = batch.values;
      if (b == batches) {
        EXPECT_NE(batch.values, beginning);
      }
    }
    EXPECT_EQ(first.size(), 150u);
    EXPECT_EQ(second.size(), 150u);
    EXPECT_LE(both.size(), 160u);
    // Validation holds other examples.
    for (uint64_t b = 0; b < source->ValidBatches(1, 0); ++b) {
      source->ValidBatch(b, 1, 0, batch);
      EXPECT_EQ(both.count(batch.values), 0u);
    }
  }
}

TEST(OpenData, BatchesDoNotDependOnWhatWasReadBefore) {
  for (const DataKind kind : kGenerated) {
    const auto source = OpenData(Small(kind));
    Batch fresh, used;
    source->TrainBatch(1, 30, 8, 24, fresh);
    for (const uint64_t index : {0, 29, 31, 500}) source->TrainBatch(1, index, 5, 20, used);
    source->TrainBatch(1, 30, 8, 24, used);
    EXPECT_EQ(fresh.tokens, used.tokens);
    EXPECT_EQ(fresh.targets, used.targets);
    EXPECT_EQ(fresh.values, used.values);
    EXPECT_EQ(fresh.concepts, used.concepts);
    const auto again = OpenData(Small(kind));
    again->TrainBatch(1, 30, 8, 24, used);
    EXPECT_EQ(fresh.tokens, used.tokens);
    EXPECT_EQ(fresh.values, used.values);
    again->TrainBatch(2, 30, 8, 24, used);
    EXPECT_TRUE(fresh.tokens != used.tokens || fresh.values != used.values);
  }
}

TEST(OpenData, LabelsComeWithTheirImages) {
  // The same set as image_set.h makes: label i mod classes in validation, in order.
  const auto source = OpenData(Small(DataKind::kGeneratedImages));
  Batch batch;
  source->ValidBatch(0, 40, 0, batch);
  for (int32_t i = 0; i < 40; ++i) EXPECT_EQ(batch.targets[static_cast<size_t>(i)], i % 5);
  EXPECT_EQ(source->shape().classes, 5u);
}

TEST(OpenData, GaussianRowsAreNormal) {
  DataConfig config = Small(DataKind::kGaussian);
  config.size = 0;
  const auto source = OpenData(config);
  EXPECT_EQ(source->shape().train_examples + source->shape().valid_examples, 1u << 20);
  Batch batch;
  source->TrainBatch(1, 0, 4000, 0, batch);
  double sum = 0, squares = 0;
  for (const float value : batch.values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 28000, 0, 0.03);
  EXPECT_NEAR(squares / 28000, 1, 0.04);
}

TEST(OpenData, SaysWhichKindReadsThePath) {
  const auto message = [](DataKind kind) {
    DataConfig config = Small(kind);
    config.path = "x";
    return ErrorOf([&] { OpenData(config); });
  };
  EXPECT_EQ(message(DataKind::kGeneratedText),
            "data.path: generated-text reads no files; set data.kind=text");
  EXPECT_EQ(message(DataKind::kGeneratedImages),
            "data.path: generated-images reads no files; set data.kind=images");
  EXPECT_EQ(message(DataKind::kGeneratedShapes),
            "data.path: generated-shapes reads no files; set data.kind=captions");
  EXPECT_EQ(message(DataKind::kGaussian), "data.path: gaussian reads no files");
}

TEST(OpenData, NamesTheFieldAtFault) {
  const auto message = [](DataKind kind, auto change) {
    DataConfig config = Small(kind);
    change(config);
    return ErrorOf([&] { OpenData(config); });
  };
  const auto none = [](DataConfig&) {};
  for (const DataKind kind : {DataKind::kText, DataKind::kImages, DataKind::kCaptions}) {
    ExpectMessage(message(kind, none), {"data.path: missing", std::string(ToString(kind))});
  }
  for (const DataKind kind : kGenerated) {
    ExpectMessage(message(kind, [](DataConfig& c) { c.path = "x"; }), {"data.path: ", "no files"});
    ExpectMessage(message(kind, [](DataConfig& c) { c.valid_path = "x"; }), {"data.valid_path: "});
    ExpectMessage(message(kind, [](DataConfig& c) { c.size = 1; }), {"data.size: 1"});
    ExpectMessage(message(kind, [](DataConfig& c) { c.size = (size_t{1} << 40) + 1; }),
                  {"data.size: 1099511627777, expected 2 .. 1099511627776"});
    for (const double share : {0.0, 1.0, -1.0, std::nan("")}) {
      ExpectMessage(message(kind, [share](DataConfig& c) { c.valid_share = share; }),
                    {"data.valid_share"});
    }
    EXPECT_EQ(message(kind, none), "no error");
  }
  ExpectMessage(message(DataKind::kGeneratedImages, [](DataConfig& c) { c.classes = 257; }),
                {"data.classes: 257, expected 1 .. 256"});
  ExpectMessage(message(DataKind::kGeneratedImages, [](DataConfig& c) { c.image = 0; }),
                {"data.image: 0"});
  ExpectMessage(message(DataKind::kGeneratedShapes, [](DataConfig& c) { c.image = 15; }),
                {"data.image: 15, expected 16 .. 64"});
  ExpectMessage(message(DataKind::kGaussian, [](DataConfig& c) { c.features = 0; }),
                {"data.features: 0"});
}

TEST(CheckBatch, NamesTheKeyAtFault) {
  const auto text = OpenData(Small(DataKind::kGeneratedText));  // 16000 and 4000 bytes
  EXPECT_EQ(ErrorOf([&] { text->CheckBatch(3, 1024); }), "no error");
  ExpectMessage(ErrorOf([&] { text->CheckBatch(4, 1024); }),
                {"train.batch: 4000 bytes of validation", "4 sequences of 1024"});
  ExpectMessage(ErrorOf([&] { text->CheckBatch(1, 4000); }),
                {"model.context: 4000 bytes of validation", "a sequence of 4000"});
  ExpectMessage(ErrorOf([&] { text->CheckBatch(1000, 16); }),
                {"train.batch: 16000 bytes of training"});
  const auto images = OpenData(Small(DataKind::kGeneratedImages));  // 160 and 40
  EXPECT_EQ(ErrorOf([&] { images->CheckBatch(40, 0); }), "no error");
  ExpectMessage(ErrorOf([&] { images->CheckBatch(41, 0); }),
                {"train.batch: 40 examples of validation do not fill a batch of 41"});
  ExpectMessage(ErrorOf([&] { images->CheckBatch(161, 0); }),
                {"train.batch: 160 examples of training"});
}

using OpenIdxTest = IoTest;

TEST_F(OpenIdxTest, TrainsOnOneSetAndValidatesOnTheOther) {
  DataConfig config;
  config.kind = DataKind::kImages;
  config.path = Directory();
  Put("train-images-idx3-ubyte", IdxHeader({4, 1, 2}) + std::string("\0\0\0\0\2\2\2\2", 8));
  Put("train-labels-idx1-ubyte", IdxHeader({4}) + std::string("\0\1\2\3", 4));
  Put("t10k-images-idx3-ubyte", IdxHeader({2, 1, 2}) + std::string("\0\1\2\3", 4));
  Put("t10k-labels-idx1-ubyte", IdxHeader({2}) + std::string("\4\0", 2));
  const auto source = OpenData(config);
  EXPECT_EQ(source->shape().train_examples, 4u);
  EXPECT_EQ(source->shape().valid_examples, 2u);
  EXPECT_EQ(source->shape().classes, 5u);
  EXPECT_EQ(source->shape().channels, 1u);
  Batch batch;
  source->ValidBatch(0, 2, 0, batch);
  // Mean and deviation are of the training images, 1 and 1.
  EXPECT_EQ(batch.values, (std::vector<float>{-1, 0, 1, 2}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{4, 0}));
  for (uint64_t b = 0; b < 4; ++b) {
    source->TrainBatch(1, b, 1, 0, batch);
    EXPECT_EQ(batch.values[0] > 0, batch.targets[0] >= 2);
  }
  Put("t10k-images-idx3-ubyte", IdxHeader({2, 2, 1}) + std::string("\0\1\2\3", 4));
  ExpectMessage(ErrorOf([&] { OpenData(config); }),
                {Directory().string(), "2 x 1, expected 1 x 2"});
  config.valid_path = Directory();
  EXPECT_EQ(OpenData(config)->shape().valid_examples, 4u);
  config.path = Path("absent");
  ExpectMessage(ErrorOf([&] { OpenData(config); }), {Path("absent").string()});
}

}  // namespace
}  // namespace numsim
