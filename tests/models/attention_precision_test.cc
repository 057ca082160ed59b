// ModelConfig::attention reaches the attention of every model, and that of no model of double.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/models/model.h"
#include "tests/models/allocation_count.h"
#include "tests/models/language_model_problem.h"
#include "tests/support/image_problem.h"

namespace numsim {
namespace {

constexpr ModelKind kKinds[] = {
    ModelKind::kLlama, ModelKind::kGpt, ModelKind::kVit, ModelKind::kClip};

const AttentionPrecision kPrecisions[] = {
    {.accumulate = "fp32"},
    {.format = "bf16", .accumulate = "trunc:25,16,128"},
    {.format = "e4m3fn", .gradient_format = "e5m2", .accumulate = "fp32"},
};

ModelConfig ConfigOf(ModelKind kind) {
  const bool text = kind == ModelKind::kLlama || kind == ModelKind::kGpt;
  return text ? TinyLanguageModel(kind) : TinyImageModel(kind);
}

Batch BatchOf(const ModelConfig& config) {
  const bool text = config.kind == ModelKind::kLlama || config.kind == ModelKind::kGpt;
  return text ? RandomText(3, config.context, config.vocabulary, 5) : RandomImages(config, 3, 5);
}

template <typename T>
std::vector<T> Results(const ModelConfig& config) {
  Pass<T> pass;
  return LossAndGradients(*MakeUnsettled<T>(config), pass, BatchOf(config));
}

double Distance(const std::vector<float>& x, const std::vector<float>& y) {
  double squares = 0, of = 0;
  for (size_t i = 1; i < x.size(); ++i) {
    squares += std::pow(double{x[i]} - y[i], 2);
    of += std::pow(double{y[i]}, 2);
  }
  return std::sqrt(squares / of);
}

TEST(AttentionPrecision, ReachesEveryModelOfFloat) {
  for (const ModelKind kind : kKinds) {
    SCOPED_TRACE(std::string(ToString(kind)));
    ModelConfig config = ConfigOf(kind);
    const std::vector<float> usual = Results<float>(config);
    const std::vector<double> wide = Results<double>(config);
    double last = 0;
    for (const AttentionPrecision& precision : kPrecisions) {
      config.attention = precision;
      const double distance = Distance(Results<float>(config), usual);
      EXPECT_GT(distance, 2 * last) << precision.format;  // each is farther off than the one before
      EXPECT_LT(distance, 0.5) << precision.format;
      last = distance;
      EXPECT_EQ(Results<double>(config), wide);
    }
    EXPECT_GT(last, 1e-3);
  }
}

// On one thread: others take their scratch when they get a first task, whenever that is.
TEST(AttentionPrecision, PassesTakeNoTensorsAfterTheFirst) {
  const int threads = ThreadCount();
  SetThreadCount(1);
  ModelConfig config = TinyLanguageModel(ModelKind::kLlama);
  config.width = config.hidden = 48;
  config.context = 64;
  const Batch batch = RandomText(2, config.context, config.vocabulary, 41);
  for (const AttentionPrecision& precision : kPrecisions) {
    config.attention = precision;
    const auto model = MakeModel<float>(config, {}, 1);
    size_t before = 0;
    for (int i = 0; i < 3; ++i) {
      before = LargeAllocations();
      model->Forward({}, batch);
      model->Backward({});
    }
    EXPECT_EQ(LargeAllocations() - before, 0u) << precision.format;
  }
  SetThreadCount(threads);
}

}  // namespace
}  // namespace numsim
