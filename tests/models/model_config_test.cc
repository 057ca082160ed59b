#include "numsim/models/model_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "numsim/base/error.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

constexpr ModelKind kEveryKind[] = {
    ModelKind::kLlama, ModelKind::kGpt, ModelKind::kVit, ModelKind::kClip, ModelKind::kMlp};

TEST(ModelKind, NamesReadBack) {
  for (const ModelKind kind : kEveryKind) EXPECT_EQ(ParseModelKind(ToString(kind)), kind);
  EXPECT_EQ(ToString(ModelKind::kClip), "clip");
}

TEST(ModelKind, UnknownNameIsAnErrorThatListsThem) {
  EXPECT_EQ(ErrorOf([] { ParseModelKind("bert"); }),
            "model 'bert' is not one of llama, gpt, vit, clip, mlp");
}

// Returns the message of the Error of CheckModelConfig, or kNoError.
std::string Complaint(ModelKind kind, const std::function<void(ModelConfig&)>& change) {
  ModelConfig config;
  config.kind = kind;
  change(config);
  return ErrorOf([&] { CheckModelConfig(config); });
}

TEST(CheckModelConfig, DefaultsOfEveryKindAreFine) {
  for (const ModelKind kind : kEveryKind) EXPECT_EQ(Complaint(kind, [](ModelConfig&) {}), kNoError);
}

struct BadField {
  ModelKind kind;
  std::function<void(ModelConfig&)> change;
  std::string message;
};

TEST(CheckModelConfig, NamesTheFieldAtFault) {
  const ModelKind llama = ModelKind::kLlama, gpt = ModelKind::kGpt, vit = ModelKind::kVit,
                  clip = ModelKind::kClip, mlp = ModelKind::kMlp;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const BadField fields[] = {
      {llama, [](auto& c) { c.layers = 0; }, "model.layers: 0"},
      {mlp, [](auto& c) { c.width = 0; }, "model.width: 0"},
      {gpt, [](auto& c) { c.heads = 0; }, "model.heads: 0"},
      {gpt, [](auto& c) { c.heads = 5; }, "model.heads: 5 does not divide model.width = 128"},
      {llama,
       [](auto& c) { c.width = 12; },
       "model.heads: rotary positions need an even width of a head, not 3"},
      {llama, [](auto& c) { c.vocabulary = 0; }, "model.vocabulary: 0"},
      {gpt, [](auto& c) { c.context = 0; }, "model.context: 0"},
      {clip, [](auto& c) { c.context = 0; }, "model.context: 0"},
      {vit, [](auto& c) { c.image = 0; }, "model.image: 0"},
      {vit, [](auto& c) { c.channels = 0; }, "model.channels: 0"},
      {vit, [](auto& c) { c.patch = 0; }, "model.patch: 0"},
      {clip, [](auto& c) { c.patch = 5; }, "model.patch: 5 does not divide model.image = 32"},
      {vit, [](auto& c) { c.classes = 0; }, "model.classes: 0"},
      {clip,
       [](auto& c) { c.text_heads = 5; },
       "model.text_heads: 5 heads do not divide a text width of 128"},
      {clip,
       [](auto& c) { c.text_width = 30; },
       "model.text_heads: 4 heads do not divide a text width of 30"},
      {mlp, [](auto& c) { c.inputs = 0; }, "model.inputs: 0"},
      {gpt,
       [](auto& c) { c.hidden = size_t{1} << 31; },
       "model.hidden: 2147483648 is above 1073741824"},
      {gpt, [](auto& c) { c.norm_epsilon = 0; }, "model.norm_epsilon: 0 is not a positive number"},
      {llama,
       [nan](auto& c) { c.norm_epsilon = nan; },
       "model.norm_epsilon: nan is not a positive number"},
      {llama, [](auto& c) { c.rope_base = 1; }, "model.rope_base: 1 is not a number above 1"},
      {llama,
       [](auto& c) { c.initial_deviation = -1; },
       "model.initial_deviation: -1 is not 0 or a positive number"},
      {vit,
       [](auto& c) { c.layer_scale = std::numeric_limits<float>::infinity(); },
       "model.layer_scale: inf is not a finite float32 number"},
      {llama,
       [](auto& c) { c.layers = 1001; },
       "model.layers: 1001 blocks are more than 1000, the most that all towers may have together"},
      {clip,
       [](auto& c) { c.layers = 501; },
       "model.layers: 1002 blocks are more than 1000, the most that all towers may have together"},
      {clip,
       [](auto& c) { c.text_layers = 999; },  // beside four of the image tower
       "model.text_layers: 1003 blocks are more than 1000, the most that all towers may have together"},
      {gpt,
       [](auto& c) { c.norm_epsilon = 1e308; },
       "model.norm_epsilon: 1e+308 is beyond the largest float32 number"},
      {gpt,
       [](auto& c) { c.norm_epsilon = 1e-40; },
       "model.norm_epsilon: 1e-40 is below the normal numbers of float32"},
      {llama,
       [](auto& c) { c.rope_base = 1e39; },
       "model.rope_base: 1e+39 is beyond the largest float32 number"},
      {llama,
       [](auto& c) { c.initial_deviation = 1e39; },
       "model.initial_deviation: 1e+39 is beyond the largest float32 number"},
  };
  for (const BadField& field : fields)
    EXPECT_EQ(Complaint(field.kind, field.change), field.message);
}

TEST(CheckModelConfig, NamesTheKeyOfAttentionAtFault) {
  EXPECT_THAT(
      Complaint(ModelKind::kVit, [](ModelConfig& c) { c.attention.accumulate = "library"; }),
      ::testing::StartsWith("attention.accumulate: 'library' leaves the order of sums"));
  EXPECT_THAT(Complaint(ModelKind::kLlama, [](ModelConfig& c) { c.attention.format = "e8m0fnu"; }),
              ::testing::StartsWith("attention.format: "));
}

TEST(CheckModelConfig, DoesNotLookAtFieldsOfOtherKinds) {
  EXPECT_EQ(Complaint(ModelKind::kGpt,
                      [](ModelConfig& c) { c.patch = c.classes = c.inputs = c.image = 0; }),
            kNoError);
  EXPECT_EQ(Complaint(ModelKind::kMlp, [](ModelConfig& c) { c.heads = c.vocabulary = 0; }),
            kNoError);
  EXPECT_EQ(Complaint(ModelKind::kVit, [](ModelConfig& c) { c.vocabulary = c.context = 0; }),
            kNoError);
  EXPECT_EQ(Complaint(ModelKind::kGpt, [](ModelConfig& c) { c.width = 12; }),
            kNoError);  // odd head_dim
  EXPECT_EQ(Complaint(ModelKind::kVit, [](ModelConfig& c) { c.layer_scale = 0; }), kNoError);
}

TEST(MatchesPattern, StarIsAnyRunOfCharacters) {
  EXPECT_TRUE(MatchesPattern("head", "head"));
  EXPECT_FALSE(MatchesPattern("head", "heads"));
  EXPECT_FALSE(MatchesPattern("heads", "head"));
  EXPECT_FALSE(MatchesPattern("ead", "head"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("*", "blocks.0"));
  EXPECT_TRUE(MatchesPattern("", ""));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_TRUE(MatchesPattern("*.mlp.down", "blocks.3.mlp.down"));
  EXPECT_FALSE(MatchesPattern("*.mlp.down", "blocks.3.mlp.down.weight"));
  EXPECT_FALSE(MatchesPattern("*.mlp.down", "mlp.down"));
  EXPECT_TRUE(MatchesPattern("blocks.*.attention.*", "blocks.11.attention.qkv"));
  EXPECT_FALSE(MatchesPattern("blocks.*.attention.*", "blocks.11.attention"));
  EXPECT_TRUE(MatchesPattern("**a**", "a"));
  // The first place where "ab" fits is not the right one.
  EXPECT_TRUE(MatchesPattern("*ab", "abab"));
  EXPECT_TRUE(MatchesPattern("*a*ab*", "xaxabx"));
  EXPECT_FALSE(MatchesPattern("*aab*", "abab"));
  EXPECT_FALSE(MatchesPattern("a?c", "abc"));
}

void AddOverride(LinearPrecision& precision, const char* layers, const char* kind) {
  LinearOverride& added = precision.overrides.emplace_back();
  added.layers = layers;
  added.precision.kind = kind;
}

TEST(PrecisionOf, TheLastOverrideThatNamesTheLayerWins) {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  AddOverride(precision, "*.mlp.*", "mx");
  AddOverride(precision, "blocks.0.*", "block");
  LinearOptions storage;
  const auto kind = [&](const char* layer) {
    return PrecisionOf(precision, layer, false, storage).kind;
  };
  EXPECT_EQ(kind("head"), "switchback");
  EXPECT_EQ(kind("blocks.1.mlp.up"), "mx");
  EXPECT_EQ(kind("blocks.0.mlp.up"), "block");
  EXPECT_EQ(kind("blocks.0.attention.out"), "block");
}

TEST(PrecisionOf, FirstAndLastLayersMayBeStandard) {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.all.format = "e4m3fn";
  precision.all.high_precision = "fp16";
  precision.all.high_precision_accumulate = "exact";
  AddOverride(precision, "head", "mx");
  LinearOptions storage;
  EXPECT_EQ(PrecisionOf(precision, "patches", true, storage).kind, "switchback");
  precision.first_last_high = true;
  const LinearOptions& edge = PrecisionOf(precision, "patches", true, storage);
  EXPECT_EQ(edge.kind, "standard");
  EXPECT_EQ(edge.format, "");
  EXPECT_EQ(edge.high_precision, "fp16");
  EXPECT_EQ(edge.high_precision_accumulate, "exact");
  EXPECT_NO_THROW(MakeLinearRecipe(edge));
  EXPECT_EQ(PrecisionOf(precision, "patches", false, storage).kind, "switchback");
  EXPECT_EQ(PrecisionOf(precision, "head", true, storage).kind, "mx");  // named, so meant
}

// Blocks of `layers` whose layers are standard, as digits.
std::string HighBlocks(LinearPrecision precision, const ModelConfig& config, const char* prefix) {
  precision = WithoutHighLast(precision, config);
  EXPECT_EQ(precision.high_last, 0);
  std::string high;
  LinearOptions storage;
  for (int i = 0; i < 10; ++i) {
    const std::string name = fmt::format("{}blocks.{}.mlp.up", prefix, i);
    const LinearOptions& options = PrecisionOf(precision, name, false, storage);
    if (options.kind == "standard") high += std::to_string(i);
  }
  return high;
}

TEST(WithoutHighLast, TheLastBlocksAreStandardRoundedUp) {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.all.high_precision = "fp16";
  ModelConfig config;
  config.layers = 10;
  const auto high = [&](double share) {
    precision.high_last = share;
    return HighBlocks(precision, config, "");
  };
  EXPECT_EQ(high(0), "");
  EXPECT_EQ(high(0.01), "9");
  EXPECT_EQ(high(0.1), "9");
  EXPECT_EQ(high(0.15), "89");
  EXPECT_EQ(high(0.3), "789");  // 0.3 * 10 is exact, 0.7 * 10 is above 7
  EXPECT_EQ(high(0.7), "3456789");
  EXPECT_EQ(high(1), "0123456789");
  AddOverride(precision, "*.mlp.up", "mx");  // named, so meant
  EXPECT_EQ(high(1), "");
  for (const double share : {-0.1, 1.1, std::nan("")}) {
    precision.high_last = share;
    EXPECT_THAT(ErrorOf([&] { WithoutHighLast(precision, config); }),
                testing::HasSubstr("linear.high_last"));
  }
}

TEST(WithoutHighLast, ATowerHasBlocksOfItsOwn) {
  LinearPrecision precision;
  precision.all.kind = "switchback";
  precision.high_last = 0.5;
  ModelConfig config;
  config.kind = ModelKind::kClip;
  config.layers = 4;
  config.text_layers = 2;
  EXPECT_EQ(HighBlocks(precision, config, "image."), "23");
  EXPECT_EQ(HighBlocks(precision, config, "text."), "1");
}

}  // namespace
}  // namespace numsim
