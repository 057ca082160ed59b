// Zero-shot retrieval: by hand, against a naive judge in float64, and through a training.
#include "numsim/train/zero_shot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "numsim/base/parallel.h"
#include "numsim/random/streams.h"
#include "tests/support/error_of.h"
#include "tests/support/special_values.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

struct Example {
  std::vector<float> image, caption;
  int32_t concept_number = 0;
};
using Examples = std::vector<Example>;

// The unit vector at that angle, in degrees.
std::vector<float> At(double degrees) {
  const double radians = degrees * M_PI / 180;
  return {static_cast<float>(std::cos(radians)), static_cast<float>(std::sin(radians))};
}

// Adds examples[begin, end) as one batch.
void AddBatch(const Examples& examples, size_t begin, size_t end, ZeroShotRetrieval& retrieval) {
  std::vector<float> images, captions;
  std::vector<int32_t> concepts;
  for (size_t i = begin; i < end; ++i) {
    const Example& example = examples[i];
    images.insert(images.end(), example.image.begin(), example.image.end());
    captions.insert(captions.end(), example.caption.begin(), example.caption.end());
    concepts.push_back(example.concept_number);
  }
  const size_t rows = end - begin, width = images.size() / rows;
  retrieval.Add({MatrixSpan<const float>(images.data(), rows, width),
                 MatrixSpan<const float>(captions.data(), rows, width)},
                concepts);
}

ZeroShot Judged(const Examples& examples, size_t batch = 1000) {
  ZeroShotRetrieval retrieval;
  for (size_t i = 0; i < examples.size(); i += batch) {
    AddBatch(examples, i, std::min(i + batch, examples.size()), retrieval);
  }
  return retrieval.Judge();
}

void ExpectJudged(const Examples& examples, size_t correct, size_t concepts) {
  const ZeroShot judged = Judged(examples);
  EXPECT_EQ(judged.images, examples.size());
  EXPECT_EQ(judged.correct, correct);
  EXPECT_EQ(judged.concepts, concepts);
  EXPECT_EQ(judged.Accuracy(), static_cast<double>(correct) / static_cast<double>(examples.size()));
}

TEST(ZeroShot, NothingHasNoAccuracy) {
  EXPECT_TRUE(std::isnan(ZeroShot().Accuracy()));
  EXPECT_EQ((ZeroShot{1, 1, 2}).Accuracy(), 1);
  const ZeroShot judged = ZeroShotRetrieval().Judge();
  EXPECT_EQ(judged.images, 0u);
  EXPECT_EQ(judged.correct, 0u);
  EXPECT_EQ(judged.concepts, 0u);
  EXPECT_TRUE(std::isnan(judged.Accuracy()));
}

TEST(ZeroShot, NearestCaptionOfTheOwnExampleIsRight) {
  ExpectJudged({{At(0), At(5), 7}, {At(90), At(80), 8}, {At(200), At(210), 9}}, 3, 3);
}

TEST(ZeroShot, NearestCaptionOfAnotherConceptIsWrong) {
  // The second image lies nearer to the first caption than to its own.
  ExpectJudged({{At(0), At(5), 7}, {At(40), At(80), 8}}, 1, 2);
}

TEST(ZeroShot, CaptionOfTheSameConceptCountsWhicheverExampleItCameFrom) {
  // Images 0 and 2 show concept 4; each is nearest to the other's caption.
  ExpectJudged({{At(0), At(100), 4}, {At(180), At(170), 5}, {At(90), At(10), 4}}, 3, 2);
  ExpectJudged({{At(0), At(100), 4}, {At(180), At(170), 5}, {At(90), At(10), 6}}, 1, 3);
}

TEST(ZeroShot, TheLeastNegativeProductIsNearest) {
  // All captions lie behind both images.
  ExpectJudged({{At(0), At(150), 1}, {At(-10), At(-110), 2}}, 1, 2);
  ExpectJudged({{At(0), At(110), 1}, {At(-30), At(-125), 2}}, 2, 2);
}

TEST(ZeroShot, LengthOfACaptionCounts) {
  // By scalar product, not by angle.
  ExpectJudged({{At(0), {1, 0}, 1}, {At(90), {3, 4}, 2}}, 1, 2);
}

TEST(ZeroShot, OfEqualsTheFirstThatWasAddedIsNearest) {
  const std::vector<float> same = At(30);
  ExpectJudged({{At(30), same, 1}, {At(31), same, 2}, {At(29), same, 3}}, 1, 3);
  // Image 0 lies between two captions, at equal products.
  const Example between{{1, 0}, {0, -1}, 1};
  const Example above{{0, 1}, {0.5F, 0.5F}, 2}, below{{1, -1}, {0.5F, -0.5F}, 1};
  EXPECT_EQ(Judged({between, above, below}).correct,
            2u);  // above wins: image 0 is wrong
  EXPECT_EQ(Judged({between, below, above}).correct, 3u);
}

TEST(ZeroShot, FirstOfEqualsIsSoAcrossBatchesToo) {
  const std::vector<float> same = At(30);
  const Examples examples = {{At(30), same, 1}, {At(31), same, 2}, {At(29), same, 2}};
  for (const size_t batch : {1, 2, 3}) EXPECT_EQ(Judged(examples, batch).correct, 1u) << batch;
}

TEST(ZeroShot, ImageWithANanIsNotRight) {
  ExpectJudged({{{kNaN, 0}, At(0), 1}, {At(90), At(90), 2}}, 1, 2);
  ExpectJudged({{{1, kNaN}, At(0), 1}}, 0,
               1);  // even where there is but one concept
  ExpectJudged({{At(0), At(0), 1}, {{kNaN, kNaN}, At(90), 1}}, 1, 1);
}

TEST(ZeroShot, CaptionWithANanIsNearestToNothing) {
  // Wherever it stands.
  const Example first{At(0), At(1), 1}, second{At(90), At(91), 2}, broken{At(180), {0, kNaN}, 3};
  EXPECT_EQ(Judged({first, second, broken}).correct, 2u);
  EXPECT_EQ(Judged({first, broken, second}).correct, 2u);
  EXPECT_EQ(Judged({broken, first, second}).correct, 2u);
  EXPECT_EQ(Judged({broken, second, first}).images, 3u);
  // Its image may be right by another caption of its concept.
  EXPECT_EQ(Judged({{At(0), {kNaN, 0}, 1}, {At(90), At(10), 1}, {At(180), At(170), 2}}).correct,
            3u);
  // No captions but broken ones.
  EXPECT_EQ(Judged({{At(0), {kNaN, 0}, 1}, {At(90), {0, kNaN}, 1}}).correct, 0u);
}

TEST(ZeroShot, ClearForgetsAll) {
  const Examples before = {{At(0), At(0), 1}, {At(90), At(90), 2}, {At(50), At(50), 3}};
  const Examples after = {{At(0), At(90), 1}, {At(91), At(0), 5}};
  ZeroShotRetrieval retrieval;
  AddBatch(before, 0, before.size(), retrieval);
  EXPECT_EQ(retrieval.Judge().correct, 3u);
  retrieval.Clear();
  EXPECT_EQ(retrieval.Judge().images, 0u);
  EXPECT_EQ(retrieval.Judge().concepts, 0u);
  AddBatch(after, 0, after.size(), retrieval);
  EXPECT_EQ(retrieval.Judge().images, 2u);
  EXPECT_EQ(retrieval.Judge().correct, 0u);
  EXPECT_EQ(retrieval.Judge().concepts, 2u);
}

TEST(ZeroShot, AfterClearTheWidthMayBeAnother) {
  ZeroShotRetrieval retrieval;
  AddBatch({{{1, 0, 0}, {1, 0, 0}, 1}}, 0, 1, retrieval);
  retrieval.Clear();
  AddBatch({{At(0), At(0), 1}, {At(90), At(90), 2}}, 0, 2, retrieval);
  EXPECT_EQ(retrieval.Judge().correct, 2u);
}

TEST(ZeroShot, ReadsRowsThatLieApart) {
  // The second and third column of a matrix of four.
  const float matrix[] = {9, 1, 0, 9, 9, 0, 1, 9};
  const MatrixSpan<const float> all(matrix, 2, 4);
  ZeroShotRetrieval retrieval;
  const int32_t concepts[] = {1, 2};
  retrieval.Add({all.Columns(1, 2), all.Columns(1, 2)}, concepts);
  EXPECT_EQ(retrieval.Judge().correct, 2u);
}

TEST(ZeroShot, OtherWidthsAndCountsThrow) {
  const float values[] = {1, 0, 0, 1, 1, 0};
  const MatrixSpan<const float> two(values, 2, 2), three(values, 2, 3), one(values, 1, 2);
  const std::vector<int32_t> concepts = {1, 2};
  EXPECT_EQ(
      ErrorOf([&] {
        ZeroShotRetrieval().Add({two, three}, concepts);
      }),
      "ZeroShotRetrieval::Add: images 2 x 2, captions 2 x 3, 2 concepts, expected one row per "
      "concept and width 2");
  EXPECT_NE(ErrorOf([&] { ZeroShotRetrieval().Add({two, one}, concepts); }), kNoError);
  const std::vector<int32_t> one_concept = {1};
  EXPECT_NE(ErrorOf([&] { ZeroShotRetrieval().Add({two, two}, one_concept); }), kNoError);
  ZeroShotRetrieval retrieval;
  retrieval.Add({two, two}, concepts);
  EXPECT_NE(ErrorOf([&] { retrieval.Add({three, three}, concepts); }), kNoError);
}

double Product(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// The definition, in float64. `margin`: receives the least distance between the two best products
// of an image.
size_t NaiveCorrect(const Examples& examples, double& margin) {
  size_t correct = 0;
  margin = std::numeric_limits<double>::infinity();
  for (const Example& example : examples) {
    std::vector<std::pair<double, int32_t>> captions;
    for (const Example& other : examples) {
      captions.emplace_back(Product(example.image, other.caption), other.concept_number);
    }
    std::sort(captions.begin(), captions.end());
    const size_t last = captions.size() - 1;
    margin = std::min(margin, captions[last].first - captions[last - 1].first);
    if (captions[last].second == example.concept_number) ++correct;
  }
  return correct;
}

std::vector<float> RandomUnit(size_t width, uint64_t seed, uint64_t number) {
  std::vector<float> row(width);
  double square = 0;
  for (size_t i = 0; i < width; ++i) {
    row[i] = static_cast<float>(RandomWord({seed, number}, i)) / 2147483648.0F - 1;
    square += static_cast<double>(row[i]) * row[i];
  }
  for (float& x : row) x = static_cast<float>(x / std::sqrt(square));
  return row;
}

// Images that lie near a caption of any example, with the products of the two best captions well
// apart.
Examples RandomExamples(size_t count, size_t width, int32_t concepts, uint64_t seed) {
  Examples examples(count);
  for (size_t i = 0; i < count; ++i) {
    examples[i].caption = RandomUnit(width, seed, i);
    examples[i].concept_number =
        static_cast<int32_t>(RandomWord({seed, 1u << 20}, i)) % concepts;  // negative ones too
  }
  for (size_t i = 0; i < count; ++i) {
    double margin = 0;
    for (uint64_t attempt = 0; margin < 1e-4; ++attempt) {
      Example& example = examples[i];
      example.image = RandomUnit(width, seed, 1000 + i + (attempt << 32));
      // Half of them toward their own caption.
      for (size_t c = 0; i % 2 == 0 && c < width; ++c) example.image[c] += example.caption[c] / 2;
      std::vector<double> products;
      for (const Example& other : examples) {
        products.push_back(Product(example.image, other.caption));
      }
      std::nth_element(products.begin(), products.begin() + 1, products.end(), std::greater<>());
      margin = products[0] - products[1];
    }
  }
  return examples;
}

TEST(ZeroShot, IsWhatTheDefinitionGivesInFloat64) {
  for (const size_t count : {2, 17, 64, 300}) {
    for (const size_t width : {2, 5, 32}) {
      const Examples examples = RandomExamples(count, width, 9, count * 100 + width);
      double margin = 0;
      const size_t correct = NaiveCorrect(examples, margin);
      ASSERT_GE(margin, 1e-4);
      std::set<int32_t> concepts;
      for (const Example& example : examples) concepts.insert(example.concept_number);
      ExpectJudged(examples, correct, concepts.size());
      if (count > 60) {  // the problem is neither trivial nor hopeless
        EXPECT_GT(correct, 0u);
        EXPECT_LT(correct, count);
      }
    }
  }
}

TEST(ZeroShot, BatchesAndTheirOrderDoNotMatter) {
  Examples examples = RandomExamples(97, 6, 12, 1);
  const ZeroShot whole = Judged(examples);
  for (const size_t batch : {1, 10, 96, 97}) {
    const ZeroShot judged = Judged(examples, batch);
    EXPECT_EQ(judged.correct, whole.correct) << batch;
    EXPECT_EQ(judged.images, whole.images) << batch;
    EXPECT_EQ(judged.concepts, whole.concepts) << batch;
  }
  for (int i = 0; i < 5; ++i) {
    std::rotate(examples.begin(), examples.begin() + 13 * i + 1, examples.end());
    std::reverse(examples.begin(), examples.begin() + 40);
    EXPECT_EQ(Judged(examples, 7).correct, whole.correct);
  }
}

TEST(ZeroShot, ThreadsDoNotMatter) {
  const Examples examples = RandomExamples(300, 8, 30, 2);
  const int threads = ThreadCount();
  SetThreadCount(1);
  const ZeroShot one = Judged(examples);
  for (const int count : {2, 5}) {
    SetThreadCount(count);
    EXPECT_EQ(Judged(examples).correct, one.correct) << count;
    EXPECT_EQ(Judged(examples).concepts, one.concepts) << count;
  }
  SetThreadCount(threads);
}

// A small CLIP that has learned a little after 40 steps.
TrainConfig TinyClip() {
  TrainConfig config;
  config.model.kind = ModelKind::kClip;
  config.model.layers = 1;
  config.model.width = 32;
  config.model.heads = 2;
  config.model.patch = 8;
  config.linear.all.high_precision = "fp32";
  config.data.kind = DataKind::kGeneratedShapes;
  config.data.image = 16;
  config.data.size = 512;
  config.train.steps = 40;
  config.train.batch = 16;
  config.train.valid_every = 20;
  config.train.valid_batches = 3;
  config.schedule.peak = 3e-3;
  config.schedule.warmup = 5;
  config.telemetry.tensors_every = 0;
  return config;
}

// Embeddings of the validation batches as the model makes them now, judged by the definition.
size_t CorrectByHand(Trainer& trainer, double& margin, size_t& images) {
  Examples examples;
  Batch batch;
  const TrainConfig& config = trainer.config();
  const size_t all = trainer.data().ValidBatches(config.train.batch, config.model.context);
  for (size_t i = 0; i < std::min(all, config.train.valid_batches); ++i) {
    trainer.data().ValidBatch(i, config.train.batch, config.model.context, batch);
    trainer.model().Forward({}, batch);
    const Embeddings<float> embeddings = trainer.model().LastEmbeddings().value();
    for (size_t row = 0; row < batch.examples; ++row) {
      const float* const image = embeddings.images.Row(row);
      const float* const caption = embeddings.captions.Row(row);
      examples.push_back({{image, image + embeddings.images.cols},
                          {caption, caption + embeddings.captions.cols},
                          batch.concepts[row]});
    }
  }
  images = examples.size();
  // Captions of one concept may be the same text: they tie, and either is right.
  const size_t correct = NaiveCorrect(examples, margin);
  return correct;
}

TEST(ZeroShotOfTraining, ColumnIsTheRetrievalOverAllValidationBatches) {
  const TrainConfig config = TinyClip();
  Trainer trainer(config, OpenShared(config.data));
  const Table& valid = trainer.telemetry().Of("valid");
  StepUntil(trainer, 1);
  ASSERT_EQ(valid.rows.size(), 1u);
  for (const uint64_t steps : {20, 40}) {
    StepUntil(trainer, steps);
    const size_t row = valid.rows.size() - 1;
    ASSERT_EQ(valid.Number(row, "step"), static_cast<double>(steps));
    double margin = 0;
    size_t images = 0;
    const size_t correct = CorrectByHand(trainer, margin, images);
    EXPECT_EQ(images, 48u);
    EXPECT_TRUE(margin == 0 || margin > 1e-6) << margin;
    EXPECT_EQ(valid.Number(row, "zero_shot"),
              static_cast<double>(correct) / static_cast<double>(images))
        << correct;
    // Harder than within a batch: more captions to choose from.
    EXPECT_LT(valid.Number(row, "zero_shot"), valid.Number(row, "accuracy"));
    EXPECT_GT(correct, 0u);
  }
}

TEST(ZeroShotOfTraining, OtherModelsHaveNone) {
  TrainConfig config = TinyConfig();
  Trainer trainer(config, OpenShared(config.data));
  StepUntil(trainer);
  const Table& valid = trainer.telemetry().Of("valid");
  ASSERT_GT(valid.rows.size(), 1u);
  for (size_t row = 0; row < valid.rows.size(); ++row) {
    EXPECT_EQ(valid.Text(row, "zero_shot"), "nan");
  }
}

TEST(ZeroShotOfTraining, ThreadsDoNotMatter) {
  const TrainConfig config = TinyClip();
  const int threads = ThreadCount();
  std::vector<std::string> tables;
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    Trainer trainer(config, OpenShared(config.data));
    StepUntil(trainer, 20);
    tables.push_back(ToCsv(trainer.telemetry().Of("valid")));
  }
  SetThreadCount(threads);
  EXPECT_EQ(tables[0], tables[1]);
}

}  // namespace
}  // namespace numsim
