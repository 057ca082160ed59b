// The number of parameters of a configuration against that of the model that it makes.
#include "experiments/runner/model_size.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "numsim/data/source.h"
#include "numsim/models/model.h"

namespace numsim::experiments {
namespace {

TrainConfig Config(const std::vector<std::string>& keys) {
  TrainConfig config;
  SetConfigKeys({"model.layers=3", "model.width=48", "model.heads=3", "data.size=20000"}, config);
  SetConfigKeys(keys, config);
  return config;
}

// The roles of parameters that are embeddings; the head of a language model reads tokens back.
bool IsEmbedding(const Parameter<float>& parameter, ModelKind kind) {
  return parameter.role == ParameterRole::kEmbedding ||
         (TraitsOf(kind).has_tokens && parameter.name == "head.weight");
}

void ExpectThoseOfTheModel(TrainConfig config) {
  SCOPED_TRACE(ToString(config.model.kind));
  const ParameterCount count = CountParameters(config);
  FitToData(config, OpenData(config.data)->shape());
  const auto model = MakeModel<float>(config.model, config.linear, 0, InitialValues::kMeans);
  size_t blocks = 0;
  for (const Parameter<float>& parameter : model->parameters()) {
    if (!IsEmbedding(parameter, config.model.kind)) blocks += parameter.Elements();
  }
  // The data decide the length of captions, and so the positions of the text tower.
  double positions = 0;
  if (config.model.kind == ModelKind::kClip) {
    const TrainConfig before;
    positions =
        (static_cast<double>(config.model.context) - static_cast<double>(before.model.context)) *
        static_cast<double>(config.model.text_width == 0 ? config.model.width
                                                         : config.model.text_width);
  }
  EXPECT_EQ(count.all + positions, static_cast<double>(model->parameters().Elements()));
  EXPECT_EQ(count.blocks, static_cast<double>(blocks));
}

TEST(ModelSize, IsThatOfTheModelThatAConfigurationMakes) {
  for (const std::string model : {"model.kind=llama", "model.kind=gpt"}) {
    ExpectThoseOfTheModel(Config({model, "data.kind=generated-text"}));
    ExpectThoseOfTheModel(Config({model, "data.kind=zipf", "data.vocabulary=1000"}));
  }
  ExpectThoseOfTheModel(Config({"model.kind=llama", "model.mlp=gelu", "model.qk_norm=true"}));
  ExpectThoseOfTheModel(Config({"model.kind=llama", "model.hidden=96", "model.layer_scale=0"}));
  const std::vector<std::string> shapes = {"data.kind=generated-shapes", "data.size=256"};
  for (std::vector<std::string> clip :
       {std::vector<std::string>{"data.image=16"},
        {"data.image=32", "model.text_layers=2", "model.text_width=32", "model.text_heads=1"},
        {"model.qk_norm=true", "model.layer_scale=0", "data.image=16"}}) {
    clip.insert(clip.end(), shapes.begin(), shapes.end());
    clip.emplace_back("model.kind=clip");
    ExpectThoseOfTheModel(Config(clip));
  }
  ExpectThoseOfTheModel(
      Config({"model.kind=vit", "data.kind=generated-images", "data.size=256", "data.image=16"}));
  ExpectThoseOfTheModel(Config({"model.kind=mlp", "data.kind=gaussian", "data.features=48"}));
  ExpectThoseOfTheModel(Config({"model.kind=mlp", "data.kind=gaussian", "data.features=20"}));
}

TEST(ModelSize, OfLlama2IsThePapers) {
  TrainConfig config;
  SetConfigKeys({"model.kind=llama",
                 "model.layers=32",
                 "model.width=4096",
                 "model.heads=32",
                 "model.hidden=11008",
                 "data.kind=zipf",
                 "data.vocabulary=32000"},
                config);
  EXPECT_NEAR(CountParameters(config).all, 6.738e9, 1e6);
}

TEST(ModelSize, TokensAreThoseOfSequencesOrPatches) {
  EXPECT_EQ(
      TokensOrPatchesPerStep(Config({"model.kind=llama", "model.context=64", "train.batch=8"})),
      512);
  EXPECT_EQ(TokensOrPatchesPerStep(Config({"model.kind=clip",
                                           "data.kind=generated-shapes",
                                           "data.image=32",
                                           "model.patch=8",
                                           "model.patch_dropout=0.5",
                                           "train.batch=10"})),
            160);
  EXPECT_EQ(TokensOrPatches(
                Config({"model.kind=mlp", "data.kind=gaussian", "train.batch=3", "train.steps=7"})),
            21);
}

}  // namespace
}  // namespace numsim::experiments
