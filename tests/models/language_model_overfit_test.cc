// Tiny language models learn four sequences by heart.
#include <gtest/gtest.h>

#include "numsim/models/model.h"
#include "tests/models/language_model_problem.h"
#include "tests/models/overfit.h"

namespace numsim {
namespace {

// A model that could not learn would stay at the log of the vocabulary, 2.4. Sequences begin with a
// token of their own, so that each prediction has one right answer.
void CheckOverfit(const ModelConfig& config, const LinearPrecision& precision) {
  const auto model = MakeModel<float>(config, precision, 1);
  Batch batch = RandomText(4, config.context, config.vocabulary - 4, 21, false);
  for (size_t b = 0; b < batch.examples; ++b) {
    batch.tokens[b * batch.length] = static_cast<int32_t>(config.vocabulary - 1 - b);
  }
  const double before = model->Forward({}, batch).Mean();
  EXPECT_NEAR(before, 2.4, 0.2);
  EXPECT_LT(Overfit(*model, batch, 250, 1e-2), 0.01);
  EXPECT_EQ(model->Forward({}, batch).correct, batch.targets.size());
}

ModelConfig Config(ModelKind kind) {
  ModelConfig config = TinyLanguageModel(kind);
  config.width = 16;
  config.heads = 2;
  config.hidden = 32;
  return config;
}

TEST(LanguageModelOverfit, LlamaReachesNearlyZeroLoss) {
  CheckOverfit(Config(ModelKind::kLlama), {});
}

TEST(LanguageModelOverfit, GptReachesNearlyZeroLoss) { CheckOverfit(Config(ModelKind::kGpt), {}); }

TEST(LanguageModelOverfit, SwitchesDoNotPreventIt) {
  ModelConfig config = Config(ModelKind::kLlama);
  config.qk_norm = true;
  config.layer_scale = 0.0F;
  CheckOverfit(config, {});
}

TEST(LanguageModelOverfit, Int8LayersReachItToo) {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.first_last_high = true;
  CheckOverfit(Config(ModelKind::kLlama), precision);
}

}  // namespace
}  // namespace numsim
