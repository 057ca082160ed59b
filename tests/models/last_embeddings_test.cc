// Model::LastEmbeddings: unit vectors of the contrastive model, nothing of the others.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numsim/models/model.h"
#include "tests/support/image_problem.h"

namespace numsim {
namespace {

template <typename T>
std::vector<double> Row(In<T> matrix, size_t row) {
  return {matrix.Row(row), matrix.Row(row) + matrix.cols};
}

double Product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Keeps the matrix of logits.
template <typename T>
class LogitsObserver : public PassObserver<T> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<T> values) override {
    if (point != "logits" || role != TensorRole::kActivation) return;
    logits.assign(values.Span().begin(), values.Span().end());
  }
  std::vector<T> logits;
};

// Norms of 1, and the logits are their products.
template <typename T>
void ExpectEmbeddings(Model<T>& model, const ModelConfig& config, size_t pairs, double tolerance) {
  LogitsObserver<T> observer;
  Pass<T> pass;
  pass.observer = &observer;
  model.Forward(pass, RandomImages(config, pairs, pairs));
  const std::optional<Embeddings<T>> embeddings = model.LastEmbeddings();
  ASSERT_TRUE(embeddings.has_value());
  const In<T> images = embeddings->images, captions = embeddings->captions;
  ASSERT_EQ(images.rows, pairs);
  ASSERT_EQ(captions.rows, pairs);
  ASSERT_EQ(images.cols, config.embedding);
  ASSERT_EQ(captions.cols, config.embedding);
  for (size_t i = 0; i < pairs; ++i) {
    const std::vector<double> image = Row<T>(images, i), caption = Row<T>(captions, i);
    EXPECT_NEAR(Product(image, image), 1, tolerance) << i;
    EXPECT_NEAR(Product(caption, caption), 1, tolerance) << i;
    for (size_t j = 0; j < pairs; ++j) {
      const double product = Product(image, Row<T>(captions, j));
      EXPECT_NEAR(observer.logits[i * pairs + j], product / 0.07, tolerance / 0.07)
          << i << ' ' << j;
    }
  }
}

template <typename T>
void ExpectEmbeddingsOfEveryBatch(double tolerance) {
  for (const ModelConfig& config : ImageModelConfigs(ModelKind::kClip)) {
    const auto model = MakeModel<T>(config, Float32Products(), 1);
    // Of the last batch, larger or smaller than those before.
    for (const size_t pairs : {3, 5, 2}) ExpectEmbeddings<T>(*model, config, pairs, tolerance);
  }
}

TEST(LastEmbeddings, AreUnitVectorsWhoseProductsAreTheLogits) {
  ExpectEmbeddingsOfEveryBatch<float>(2e-6);
  ExpectEmbeddingsOfEveryBatch<double>(1e-7);  // the temperature is a float32
}

TEST(LastEmbeddings, StayThroughTheBackwardPass) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeModel<float>(config, Float32Products(), 1);
  model->Forward({}, RandomImages(config, 4, 1));
  const std::vector<double> image = Row<float>(model->LastEmbeddings()->images, 3);
  const std::vector<double> caption = Row<float>(model->LastEmbeddings()->captions, 3);
  model->Backward({});
  EXPECT_EQ(Row<float>(model->LastEmbeddings()->images, 3), image);
  EXPECT_EQ(Row<float>(model->LastEmbeddings()->captions, 3), caption);
}

TEST(LastEmbeddings, ImagesAreOfImagesAndCaptionsOfCaptions) {
  const ModelConfig config = TinyImageModel(ModelKind::kClip);
  const auto model = MakeModel<float>(config, Float32Products(), 1);
  Batch batch = RandomImages(config, 3, 1);
  model->Forward({}, batch);
  const std::vector<double> image = Row<float>(model->LastEmbeddings()->images, 1);
  const std::vector<double> caption = Row<float>(model->LastEmbeddings()->captions, 1);
  const size_t pixels = batch.values.size() / 3;
  for (size_t i = 0; i < pixels; ++i) batch.values[pixels + i] *= i % 2 == 0 ? 3.0F : -1.0F;
  model->Forward({}, batch);
  EXPECT_NE(Row<float>(model->LastEmbeddings()->images, 1), image);
  EXPECT_EQ(Row<float>(model->LastEmbeddings()->captions, 1), caption);
}

template <typename T>
void ExpectNone(const ModelConfig& config, const Batch& batch) {
  const auto model = MakeModel<T>(config, Float32Products(), 1);
  EXPECT_FALSE(model->LastEmbeddings().has_value()) << ToString(config.kind);
  model->Forward({}, batch);
  EXPECT_FALSE(model->LastEmbeddings().has_value()) << ToString(config.kind);
  model->Backward({});
  EXPECT_FALSE(model->LastEmbeddings().has_value()) << ToString(config.kind);
}

TEST(LastEmbeddings, OtherModelsHaveNone) {
  for (const ModelKind kind : {ModelKind::kLlama, ModelKind::kGpt}) {
    ModelConfig config;
    config.kind = kind;
    config.layers = 1;
    config.width = 16;
    config.heads = 2;
    config.vocabulary = 11;
    config.context = 6;
    ExpectNone<float>(config, RandomText(2, 6, 11, 1));
    ExpectNone<double>(config, RandomText(2, 6, 11, 1));
  }
  const ModelConfig image = TinyImageModel(ModelKind::kVit);
  ExpectNone<float>(image, RandomImages(image, 3, 1));
  ExpectNone<double>(image, RandomImages(image, 3, 1));
  ModelConfig student;
  student.kind = ModelKind::kMlp;
  student.layers = 1;
  student.width = student.inputs = 16;
  Batch batch;
  batch.examples = 3;
  batch.values = NormalDraws(3 * 16, 1);
  ExpectNone<float>(student, batch);
  ExpectNone<double>(student, batch);
}

}  // namespace
}  // namespace numsim
