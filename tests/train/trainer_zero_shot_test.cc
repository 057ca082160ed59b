// Zero-shot retrieval in a training: where it shows, and that it survives interruptions.
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/train/zero_shot.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"
#include "tests/train/interrupted_run.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

TEST(ZeroShotRetrieval, TakesTheNearestCaptionOfAnyExample) {
  // Images along the axes. Of concept 1 the caption is that of the last example; the third image
  // has the caption of the first as its nearest.
  const std::vector<float> images = {1, 0, 0, 1, 0.8f, 0.6f, 0, 1};
  const std::vector<float> captions = {1, 0, -1, 0, 0, -1, 0.6f, 0.8f};
  const Embeddings<float> all{{images.data(), 4, 2}, {captions.data(), 4, 2}};
  ZeroShotRetrieval retrieval;
  retrieval.Add(all, std::vector<int32_t>{5, 1, 7, 1});
  const ZeroShot result = retrieval.Judge();
  EXPECT_EQ(result.images, 4u);
  EXPECT_EQ(result.concepts, 3u);
  EXPECT_EQ(result.correct, 3u);
  EXPECT_EQ(result.Accuracy(), 0.75);
}

// More images than are judged at a time: unit vectors in a plane, by angle.
TEST(ZeroShotRetrieval, TakesAnyNumberOfExamplesInAnyBatches) {
  constexpr size_t kCount = 600;
  std::vector<float> images, captions;
  std::vector<int32_t> concepts;
  size_t correct = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const SinCos own = SinCos2Pi(static_cast<double>(i) / kCount);
    captions.insert(captions.end(), {static_cast<float>(own.cos), static_cast<float>(own.sin)});
    concepts.push_back(static_cast<int32_t>(i / 7));
    // An image points near the caption of a number that is `shift` larger.
    const size_t shift = i % 5, nearest = (i + shift) % kCount;
    const SinCos image = SinCos2Pi((static_cast<double>(nearest) + 0.2) / kCount);
    images.insert(images.end(), {static_cast<float>(image.cos), static_cast<float>(image.sin)});
    correct += nearest / 7 == i / 7 ? 1 : 0;
  }
  ZeroShotRetrieval retrieval;
  for (int round = 0; round < 2; ++round) {
    retrieval.Clear();
    for (size_t i = 0; i < kCount; i += 200) {
      retrieval.Add({{images.data() + 2 * i, 200, 2}, {captions.data() + 2 * i, 200, 2}},
                    std::span<const int32_t>(concepts).subspan(i, 200));
    }
    EXPECT_EQ(retrieval.Judge().images, kCount);
    EXPECT_EQ(retrieval.Judge().correct, correct);
    EXPECT_EQ(retrieval.Judge().concepts, 86u);
  }
  EXPECT_GT(correct, kCount / 2);
  EXPECT_LT(correct, kCount - 100);
}

TrainConfig TinyClip() {
  TrainConfig config = StatefulConfig();
  config.model.kind = ModelKind::kClip;
  config.model.patch = 8;
  config.data.kind = DataKind::kGeneratedShapes;
  config.data.size = 256;
  config.data.image = 16;
  config.train.batch = 8;
  return config;
}

TEST(Trainer, ZeroShotAccuracyIsThatOfAllValidationBatchesTogether) {
  TrainConfig config = TinyClip();
  config.storage = {};
  config.linear.all = {};
  Trainer trainer(config, OpenShared(config.data));
  EXPECT_FALSE(trainer.last_zero_shot().has_value());
  trainer.Validate();
  ASSERT_TRUE(trainer.last_zero_shot().has_value());
  // By hand: products in float64.
  std::vector<std::vector<double>> images, captions;
  std::vector<int32_t> concepts;
  Batch batch;
  for (uint64_t b = 0; b < 2; ++b) {
    trainer.data().ValidBatch(b, 8, 0, batch);
    trainer.model().Forward({}, batch);
    const auto embeddings = trainer.model().LastEmbeddings();
    for (size_t i = 0; i < 8; ++i) {
      const float *const u = embeddings->images.Row(i), *const v = embeddings->captions.Row(i);
      images.emplace_back(u, u + embeddings->images.cols);
      captions.emplace_back(v, v + embeddings->captions.cols);
      double square = 0;
      for (const double x : images.back()) square += x * x;
      EXPECT_NEAR(square, 1, 1e-6);
    }
    concepts.insert(concepts.end(), batch.concepts.begin(), batch.concepts.end());
  }
  size_t correct = 0;
  for (size_t i = 0; i < 16; ++i) {
    size_t best = 0;
    double largest = -2;
    for (size_t j = 0; j < 16; ++j) {
      double product = 0;
      for (size_t k = 0; k < images[i].size(); ++k) product += images[i][k] * captions[j][k];
      if (product > largest + 1e-6) best = j;
      largest = std::max(largest, product);
    }
    correct += concepts[best] == concepts[i] ? 1 : 0;
  }
  EXPECT_EQ(trainer.last_zero_shot()->images, 16u);
  EXPECT_EQ(trainer.last_zero_shot()->correct, correct);
  trainer.Step();
  EXPECT_EQ(trainer.telemetry().Of("valid").Number(0, "zero_shot"),
            static_cast<double>(correct) / 16);
}

TEST(Trainer, ModelsWithoutEmbeddingsHaveNoZeroShotAccuracy) {
  const TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  EXPECT_FALSE(trainer.last_zero_shot().has_value());
  EXPECT_EQ(trainer.telemetry().Of("valid").Text(0, "zero_shot"), "nan");
}

// The saved values are those that were recorded, whoever validates beside it.
TEST(Trainer, ZeroShotAccuracyIsRestored) {
  const TrainConfig config = TinyClip();
  const std::shared_ptr<const DataSource> data = OpenShared(config.data);
  Trainer trainer(config, data);
  StepUntil(trainer, 6);
  const TrainState before = trainer.Save();
  const ZeroShot recorded = *trainer.last_zero_shot();
  trainer.Validate();
  EXPECT_EQ(trainer.Save().fields, before.fields);
  Trainer restored(config, data);
  restored.Restore(before);
  ASSERT_TRUE(restored.last_zero_shot().has_value());
  EXPECT_EQ(restored.last_zero_shot()->images, recorded.images);
  EXPECT_EQ(restored.last_zero_shot()->correct, recorded.correct);
  EXPECT_EQ(restored.last_zero_shot()->concepts, recorded.concepts);
  EXPECT_EQ(restored.Save().fields, before.fields);

  // As earlier versions wrote it.
  TrainState older = before;
  for (auto& [name, text] : older.fields) {
    if (name != "validation") continue;
    for (int i = 0; i < 3; ++i) text.resize(text.rfind(' '));
  }
  restored.Restore(older);
  EXPECT_FALSE(restored.last_zero_shot().has_value());
  EXPECT_EQ(restored.last_validation()->sum, trainer.last_validation()->sum);
  for (auto& [name, text] : older.fields) {
    if (name == "validation") text += " 1";
  }
  ExpectMessage(ErrorOf([&] { restored.Restore(older); }), {"'validation' has 5 numbers"});
}

class TrainRunOfClip : public IoTest {};

TEST_F(TrainRunOfClip, InterruptedAndResumedItEndsInTheSameBytes) {
  const TrainConfig config = TinyClip();
  const auto train = [&](std::string_view folder, bool resume, uint64_t stop_at) {
    return TrainUntil(config, Path(folder), resume, stop_at);
  };
  const std::string summary = train("whole", false, UINT64_MAX).summary;
  const Table valid = ReadCsv(Path("whole") / "valid.csv");
  const std::string line =
      fmt::format("zero-shot accuracy          {} (among ", valid.Text(3, "zero_shot"));
  EXPECT_THAT(summary, HasSubstr(line));
  for (const uint64_t at : {5, 11, 12}) {
    const std::string folder = fmt::format("parts{}", at);
    train(folder, false, at);
    train(folder, true, UINT64_MAX);
    EXPECT_EQ(ReproducibleFiles(Path(folder)), ReproducibleFiles(Path("whole"))) << at;
  }
}

}  // namespace
}  // namespace numsim
