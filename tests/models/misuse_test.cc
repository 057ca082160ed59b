// Batches that do not have the sizes that they state throw Error.
#include "tests/support/misuse.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "numsim/models/model.h"

namespace numsim {
namespace {

ModelConfig SmallModel(ModelKind kind) {
  ModelConfig config;
  config.kind = kind;
  config.layers = 1;
  config.width = config.hidden = config.inputs = 8;
  config.heads = 2;
  config.vocabulary = 11;
  config.context = 6;
  config.image = 8;
  config.channels = 1;
  config.classes = 3;
  return config;
}

// Returns a batch of two examples that a model of this kind accepts: sequences of 5 tokens, images
// of 8 x 8 pixels, or rows of 8 features.
Batch TwoExamples(ModelKind kind) {
  const bool has_tokens = kind != ModelKind::kVit && kind != ModelKind::kMlp;
  const bool has_images = kind == ModelKind::kVit || kind == ModelKind::kClip;
  Batch batch;
  batch.examples = 2;
  if (has_tokens) {
    batch.length = 5;
    batch.tokens.assign(10, 1);
  }
  if (kind == ModelKind::kLlama || kind == ModelKind::kGpt) batch.targets.assign(10, 1);
  if (kind == ModelKind::kVit) batch.targets.assign(2, 1);
  if (kind == ModelKind::kClip) {
    batch.ends.assign(2, 4);
    batch.concepts = {0, 1};
  }
  if (has_images) batch.values.assign(2 * 64, 0.5f);
  if (kind == ModelKind::kMlp) batch.values.assign(2 * 8, 0.5f);
  return batch;
}

// Returns the Error of a Forward of the batch after `change`.
std::string BatchError(ModelKind kind, const std::function<void(Batch&)>& change) {
  Batch batch = TwoExamples(kind);
  change(batch);
  const auto model = MakeModel<float>(SmallModel(kind), {}, 1);
  return ErrorOf([&] { model->Forward({}, batch); });
}

TEST(ModelMisuse, ABatchOfTheStatedSizesDoesNotThrow) {
  for (const ModelKind kind :
       {ModelKind::kLlama, ModelKind::kGpt, ModelKind::kVit, ModelKind::kClip, ModelKind::kMlp}) {
    EXPECT_EQ(BatchError(kind, [](Batch&) {}), kNoError) << ToString(kind);
  }
}

TEST(ModelMisuse, SequencesOfOtherSizesThrow) {
  for (const ModelKind kind : {ModelKind::kLlama, ModelKind::kGpt}) {
    EXPECT_EQ(BatchError(kind, [](Batch& b) { b.tokens.resize(9); }),
              "Model::Forward: 'batch.tokens' has 9 elements, expected 10 (2 x 5)");
    EXPECT_EQ(BatchError(kind, [](Batch& b) { b.targets.clear(); }),
              "Model::Forward: 'batch.targets' has 0 elements, expected 10 (2 x 5)");
    EXPECT_EQ(BatchError(kind,
                         [](Batch& b) {
                           b.length = 10;
                           b.examples = 1;
                         }),
              "Model::Forward: sequences of 10 tokens, expected at most 6");
    EXPECT_EQ(BatchError(kind, [](Batch& b) { b.tokens[3] = 11; }),
              "index 3 is 11, expected at least 0 and less than 11");
    EXPECT_EQ(BatchError(kind, [](Batch& b) { b.targets[3] = 11; }),
              "CrossEntropy: target 11 of 11 classes in row 3");
  }
}

TEST(ModelMisuse, ImagesCaptionsAndFeaturesOfOtherSizesThrow) {
  EXPECT_EQ(BatchError(ModelKind::kVit, [](Batch& b) { b.targets.resize(3); }),
            "Model::Forward: 'batch.targets' has 3 elements, expected 2");
  EXPECT_EQ(BatchError(ModelKind::kVit, [](Batch& b) { b.values.pop_back(); }),
            "Upload: 'values' has 127 elements, expected 128 (2 x 64)");
  EXPECT_EQ(BatchError(ModelKind::kClip, [](Batch& b) { b.ends.pop_back(); }),
            "Model::Forward: 'batch.ends' has 1 elements, expected 2");
  EXPECT_EQ(BatchError(ModelKind::kClip, [](Batch& b) { b.concepts.pop_back(); }),
            "Model::Forward: 'batch.concepts' has 1 elements, expected 2");
  EXPECT_EQ(BatchError(ModelKind::kClip, [](Batch& b) { b.tokens.pop_back(); }),
            "Model::Forward: 'batch.tokens' has 9 elements, expected 10 (2 x 5)");
  EXPECT_EQ(BatchError(ModelKind::kMlp, [](Batch& b) { b.values.pop_back(); }),
            "Upload: 'values' has 15 elements, expected 16 (2 x 8)");
}

}  // namespace
}  // namespace numsim
