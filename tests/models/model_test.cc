// MakeModel makes what the kind says.
#include "numsim/models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace numsim {
namespace {

TEST(MakeModel, MakesEveryKind) {
  // A linear layer that no other kind has.
  const std::vector<std::pair<ModelKind, std::string>> kinds{
      {ModelKind::kLlama, "blocks.0.mlp.gate_up"},
      {ModelKind::kGpt, "blocks.0.mlp.up"},
      {ModelKind::kVit, "patches"},
      {ModelKind::kClip, "text.blocks.0.mlp.up"},
      {ModelKind::kMlp, "input"}};
  for (const auto& kind : kinds) {
    ModelConfig config;
    config.kind = kind.first;
    config.width = 32;
    const auto model = MakeModel<float>(config, {}, 1);
    const std::vector<std::string> layers = model->LinearLayers();
    EXPECT_EQ(std::count(layers.begin(), layers.end(), kind.second), 1)
        << ToString(kind.first) << ' ' << testing::PrintToString(layers);
    EXPECT_GT(model->parameters().Elements(), 0U);
  }
}

TEST(MakeModel, ModelsOfBothTypesStartAlike) {
  for (const ModelKind kind :
       {ModelKind::kLlama, ModelKind::kGpt, ModelKind::kVit, ModelKind::kClip, ModelKind::kMlp}) {
    ModelConfig config;
    config.kind = kind;
    config.layers = 1;
    config.width = 32;
    const auto narrow = MakeModel<float>(config, {}, 1);
    const auto wide = MakeModel<double>(config, {}, 1);
    const auto other = MakeModel<float>(config, {}, 2);
    ASSERT_EQ(narrow->parameters().size(), wide->parameters().size());
    for (size_t i = 0; i < narrow->parameters().size(); ++i) {
      const auto a = narrow->parameters()[i].value.View().Span();
      const auto b = wide->parameters()[i].value.View().Span();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()))
          << narrow->parameters()[i].name;
    }
    const auto a = narrow->parameters()[0].value.View().Span();
    const auto b = other->parameters()[0].value.View().Span();
    EXPECT_FALSE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << ToString(kind);
  }
}

TEST(MakeModel, OfMeansHasNoDrawsInItsParameters) {
  for (const ModelKind kind :
       {ModelKind::kLlama, ModelKind::kGpt, ModelKind::kVit, ModelKind::kClip, ModelKind::kMlp}) {
    ModelConfig config;
    config.kind = kind;
    config.width = 32;
    const auto drawn = MakeModel<float>(config, {}, 1);
    const auto means = MakeModel<float>(config, {}, 1, InitialValues::kMeans);
    ASSERT_EQ(means->parameters().size(), drawn->parameters().size());
    for (Parameter<float>& parameter : means->parameters()) {
      const auto values = parameter.value.View().Span();
      EXPECT_EQ(std::count(values.begin(), values.end(), values[0]),
                static_cast<std::ptrdiff_t>(values.size()))
          << ToString(kind) << ' ' << parameter.name;
      if (parameter.role == ParameterRole::kMatrix) {
        EXPECT_EQ(values[0], 0) << parameter.name;
      }
    }
  }
}

TEST(MakeModel, BadConfigurationIsAnError) {
  ModelConfig config;
  config.heads = 3;  // of width 128
  EXPECT_THROW(MakeModel<float>(config, {}, 1), Error);
  config.heads = 4;
  LinearPrecision precision;
  precision.all.kind = "no-such-kind";
  EXPECT_THROW(MakeModel<float>(config, precision, 1), Error);
}

}  // namespace
}  // namespace numsim
