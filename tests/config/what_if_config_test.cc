// The recipes of what-if telemetry as text, and the keys of [what_if].
#include "numsim/config/what_if_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numsim/config/config.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

TEST(WhatIfRecipe, SurvivesBeingWritten) {
  for (const char* const text : {"e4m3fn tensor",
                                 "e4m3fn row pow2-ceil",
                                 "e5m2 column",
                                 "e2m1fn block:16",
                                 "e2m1fn block:32 e8m0 sr",
                                 "int8 tile:128x64 sr:8:b",
                                 "bf16 tensor",
                                 "bf16 tensor absmax rtz",
                                 "e4m3fn delayed",
                                 "e4m3fn delayed history:16 most-recent margin:-2 sr:12",
                                 "e4m3:bias=8 tensor"}) {
    EXPECT_EQ(ToString(ParseWhatIfRecipe(text)), text);
  }
}

TEST(WhatIfRecipe, DefaultsAndOrderDoNotMatter) {
  EXPECT_EQ(ToString(ParseWhatIfRecipe("  e4m3fn\ttensor  absmax rne ")), "e4m3fn tensor");
  EXPECT_EQ(ToString(ParseWhatIfRecipe("e2m1fn block:32 sr e8m0")), "e2m1fn block:32 e8m0 sr");
  EXPECT_EQ(ToString(ParseWhatIfRecipe("e4m3fn delayed margin:0 max history:1024")),
            "e4m3fn delayed");
  EXPECT_EQ(ToString(ParseWhatIfRecipe("bf16 tensor none")), "bf16 tensor");
}

TEST(WhatIfRecipe, FieldsAreThoseOfTheText) {
  const WhatIfRecipe current = ParseWhatIfRecipe("e2m1fn tile:4x32 e8m0 sr:8");
  EXPECT_EQ(current.format.name, "e2m1fn");
  EXPECT_EQ(current.layout, (ScaleLayout{Granularity::kTile, 32, 4}));
  EXPECT_EQ(current.scale_rule, ScaleRule::kE8m0);
  EXPECT_FALSE(current.delayed.has_value());
  EXPECT_EQ(current.rounding.mode, RoundingMode::kStochastic);
  EXPECT_EQ(current.rounding.random_bits, 8);
  const WhatIfRecipe delayed = ParseWhatIfRecipe("e5m2 delayed history:7 most-recent margin:3");
  EXPECT_EQ(delayed.delayed, (DelayedScalingOptions{7, AmaxAlgorithm::kMostRecent, 3}));
  EXPECT_EQ(delayed.layout, ScaleLayout());
}

TEST(WhatIfRecipe, ErrorsNameTheWordAndTheNearestName) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {"recipe '': expected FORMAT SCALING"}},
      {"e4m3fn", {"recipe 'e4m3fn': expected FORMAT SCALING"}},
      {"e4m3fm tensor", {"'e4m3fm'", "did you mean e4m3fn?"}},
      {"e8m0fnu tensor", {"'e8m0fnu' has no sign or no zero"}},
      {"ue4m3 tensor", {"no sign"}},
      {"e4m3fn tensr", {"scaling 'tensr' is not one of tensor, row", "did you mean tensor?"}},
      {"e4m3fn delaid", {"scaling 'delaid'", "did you mean delayed?"}},
      {"e4m3fn block:0", {"scaling 'block:0'", "did you mean block:N?"}},
      {"e4m3fn tensor absmx", {"option 'absmx' is not one of absmax", "did you mean absmax?"}},
      {"e4m3fn tensor history:4", {"option 'history:4' is not one of absmax"}},
      {"e4m3fn delayed absmax", {"option 'absmax' is not one of history:N, max, most-recent"}},
      {"e4m3fn delayed most-recnt", {"did you mean most-recent?"}},
      {"e4m3fn delayed history:0", {"option 'history:0'", "from 1 to 65536"}},
      {"e4m3fn delayed history:", {"option 'history:'", "from 1 to 65536"}},
      {"e4m3fn delayed history:5x", {"option 'history:5x'"}},
      {"e4m3fn delayed margin:33", {"option 'margin:33'", "from -32 to 32"}},
      {"e4m3fn tensor sr:33", {"'sr:33'", "1 to 32 bits"}},
      {"e4m3fn tensor absmax none", {"'none' is a second scale rule"}},
      {"e4m3fn tensor sr rne", {"'rne' is a second rounding mode"}},
      {"e4m3fn delayed max max", {"'max' is a second algorithm"}},
  };
  for (const auto& [text, parts] : cases) {
    const std::string error = ErrorOf([&recipe = text] { ParseWhatIfRecipe(recipe); });
    for (const std::string& part : parts) EXPECT_THAT(error, HasSubstr(part)) << text;
  }
}

WhatIfConfig Parse(std::string_view toml, const std::vector<std::string>& overrides = {}) {
  return ParseTrainConfig(toml, "f.toml", "/folder", overrides).what_if;
}

TEST(WhatIfKeys, AreArraysOfTexts) {
  const WhatIfConfig config = Parse(
      "[what_if]\nevery = 7\nrecipes = [\n  \"e4m3fn tensor\", # a comment\n  'e2m1fn block:16',\n]\n"
      "layers = [\"head\", '*.mlp.*']");
  EXPECT_EQ(config.every, 7u);
  ASSERT_EQ(config.recipes.size(), 2u);
  EXPECT_EQ(ToString(config.recipes[1]), "e2m1fn block:16");
  EXPECT_EQ(config.layers, (std::vector<std::string>{"head", "*.mlp.*"}));
}

TEST(WhatIfKeys, OneTextIsAnArrayOfItAndNoTextIsNone) {
  EXPECT_EQ(Parse("what_if.recipes = 'e4m3fn tensor'").recipes.size(), 1u);
  EXPECT_EQ(Parse("", {"what_if.recipes=e4m3fn tensor"}).recipes.size(), 1u);
  EXPECT_EQ(Parse("", {"what_if.recipes=['e4m3fn row', 'e5m2 row']"}).recipes.size(), 2u);
  const char* const toml = "what_if.recipes = ['e4m3fn tensor']";
  EXPECT_TRUE(Parse(toml, {"what_if.recipes=[]"}).recipes.empty());
  EXPECT_TRUE(Parse(toml, {"what_if.recipes="}).recipes.empty());
}

TEST(WhatIfKeys, ErrorsNameTheKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\nwhat_if.recipes = ['e4m3fn row', 'e4m3fn rwo']",
       "f.toml:2: what_if.recipes: recipe 'e4m3fn rwo': scaling 'rwo' is not one of tensor"},
      {"what_if.recipes = 5", "f.toml:1: what_if.recipes: must be an array of texts, not a whole"},
      {"what_if.recipes = ['e4m3fn row', 5]",
       "what_if.recipes: must be an array of texts, not one with a whole number"},
      {"what_if.recipes = [['e4m3fn row']]", "what_if.recipes: must be an array of texts"},
      {"what_if.recipes = [{a = 1}]", "what_if.recipes.0"},
      {"what_if.recipes = ['e4m3fn row', 'e4m3fn row absmax']",
       "f.toml:1: what_if.recipes: recipe 'e4m3fn row' is given twice"},
      {"what_if.recipes = ['e4m3fn row']\nwhat_if.layers = []",
       "f.toml:2: what_if.layers: is empty"},
      {"what_if.every = 0", "f.toml:1: what_if.every: 0 is below 1"},
      {"what_if.recipe = []", "did you mean what_if.recipes?"},
      {"[whatif]\nevery = 5", "f.toml:1: whatif: there is no such section"},
  };
  for (const auto& [toml, part] : cases) {
    EXPECT_THAT(ErrorOf([&text = toml] { Parse(text); }), HasSubstr(part)) << toml;
  }
}

}  // namespace
}  // namespace numsim
