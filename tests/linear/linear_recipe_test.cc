#include "numsim/linear/linear_recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LinearOptions Kind(const std::string& kind) {
  LinearOptions options;
  options.kind = kind;
  return options;
}

// Returns the message of the Error, or kNoError.
std::string RecipeError(const LinearOptions& options) {
  return ErrorOf([&] { MakeLinearRecipe(options); });
}

void ExpectMessage(const LinearOptions& options, const std::vector<std::string>& parts) {
  const std::string message = RecipeError(options);
  EXPECT_NE(message, kNoError) << options.kind;
  for (const std::string& part : parts) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_THAT(message, Not(HasSubstr("\n")));
}

TEST(LinearKinds, AreThoseOfTheList) {
  std::vector<std::string> names;
  for (const LinearKind& kind : LinearKinds()) {
    names.emplace_back(kind.name);
    EXPECT_FALSE(kind.summary.empty()) << kind.name;
    EXPECT_FALSE(kind.source.empty()) << kind.name;
    EXPECT_EQ(RecipeError(Kind(std::string(kind.name))), kNoError) << kind.name;
    EXPECT_EQ(MakeLinearRecipe(Kind(std::string(kind.name))).kind, kind.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"standard",
                                      "switchback",
                                      "switchback-m",
                                      "switchback-q",
                                      "llm-int8",
                                      "llm-int8-tensor-w",
                                      "tensor-wise",
                                      "row-wise-gw-hp",
                                      "te-hybrid",
                                      "e5m2-backward",
                                      "block",
                                      "mx"}));
}

TEST(MakeLinearRecipe, RefusesAnUnknownKind) {
  ExpectMessage(Kind("switchbake"), {"kind", "switchbake", "switchback-m"});
  ExpectMessage(Kind(""), {"kind"});
}

// Bit widths above 16, and formats without a sign.
TEST(MakeLinearRecipe, RefusesFormatsThatCannotBeQuantisedTo) {
  for (const char* kind : {"switchback",
                           "switchback-m",
                           "switchback-q",
                           "llm-int8",
                           "llm-int8-tensor-w",
                           "tensor-wise",
                           "row-wise-gw-hp",
                           "te-hybrid",
                           "e5m2-backward",
                           "block",
                           "mx"}) {
    for (const char* format : {"fp32", "tf32", "e8m0fnu", "binary8p4ue", "no-such-format"}) {
      LinearOptions options = Kind(kind);
      options.format = format;
      ExpectMessage(options, {"format", format});
      options.format = "";
      options.gradient_format = format;
      ExpectMessage(options, {"gradient", format});
    }
  }
}

TEST(MakeLinearRecipe, RefusesAHighPrecisionThatIsNone) {
  for (const char* format : {"int8", "e4m3fn", "tf32", "no-such-format"}) {
    LinearOptions options = Kind("switchback");
    options.high_precision = format;
    ExpectMessage(options, {"high", format});
  }
}

TEST(MakeLinearRecipe, RefusesRulesThatAreNone) {
  LinearOptions options = Kind("switchback");
  options.accumulate = "fp33";
  ExpectMessage(options, {"fp33"});
  options = Kind("switchback");
  options.high_precision_accumulate = "trunc";
  ExpectMessage(options, {"trunc"});
  options = Kind("switchback");
  options.scale_rule = "absmin";
  ExpectMessage(options, {"absmin"});
}

TEST(MakeLinearRecipe, RefusesOptionsThatAKindDoesNotHave) {
  struct Case {
    std::string name;  // part of the option's name
    std::function<void(LinearOptions&)> set;
    std::vector<std::string> kinds;  // that do not have it
  };
  const std::vector<Case> cases = {
      {"format", [](LinearOptions& o) { o.format = "int8"; }, {"standard"}},
      {"gradient", [](LinearOptions& o) { o.gradient_format = "int8"; }, {"standard"}},
      {"gradient",
       [](LinearOptions& o) { o.gradient_rounding.mode = RoundingMode::kStochastic; },
       {"standard"}},
      {"scale", [](LinearOptions& o) { o.scale_rule = "absmax"; }, {"standard"}},
      {"accumulate", [](LinearOptions& o) { o.accumulate = "fp32"; }, {"standard"}},
      {"delayed",
       [](LinearOptions& o) { o.delayed = DelayedScalingOptions{}; },
       {"standard",
        "switchback",
        "switchback-m",
        "switchback-q",
        "llm-int8",
        "llm-int8-tensor-w",
        "tensor-wise",
        "row-wise-gw-hp",
        "block",
        "mx"}},
      {"block",
       [](LinearOptions& o) { o.block = 32; },
       {"standard",
        "switchback",
        "switchback-m",
        "switchback-q",
        "llm-int8",
        "llm-int8-tensor-w",
        "tensor-wise",
        "row-wise-gw-hp",
        "te-hybrid"}},
  };
  for (const Case& c : cases) {
    for (const std::string& kind : c.kinds) {
      LinearOptions options = Kind(kind);
      c.set(options);
      ExpectMessage(options, {c.name, kind});
    }
  }
}

TEST(MakeLinearRecipe, RefusesSomeScaleRulesBesideDelayedScaling) {
  for (const char* rule : {"e8m0", "none"}) {
    LinearOptions options = Kind("te-hybrid");
    options.delayed = DelayedScalingOptions{};
    options.scale_rule = rule;
    ExpectMessage(options, {"scale", "delayed", "pow2-floor"});
  }
}

TEST(MakeLinearRecipe, DelayedScalingHasTheScaleRuleOfTheKindOrOfTheOptions) {
  const auto rule = [](const char* kind, const char* given) {
    LinearOptions options = Kind(kind);
    options.delayed = DelayedScalingOptions{};
    options.scale_rule = given;
    return MakeLinearRecipe(options).delayed->rule;
  };
  EXPECT_EQ(rule("te-hybrid", ""), ScaleRule::kAbsmax);
  EXPECT_EQ(rule("te-hybrid", "pow2-floor"), ScaleRule::kPow2Floor);
  EXPECT_EQ(rule("e5m2-backward", ""), ScaleRule::kPow2Floor);
  EXPECT_EQ(rule("e5m2-backward", "pow2-ceil"), ScaleRule::kPow2Ceil);
}

TEST(MakeLinearRecipe, RefusesAnEmptyHistory) {
  LinearOptions options = Kind("te-hybrid");
  options.delayed = DelayedScalingOptions{.history = 0};
  ExpectMessage(options, {"history"});
}

// The table of the algorithms, operand by operand: layouts as the operand enters its product.
TEST(MakeLinearRecipe, LayoutsAreThoseOfTheAlgorithms) {
  struct Case {
    const char* kind;
    std::vector<std::string> layouts;  // X W, G W^T, G^T X^T; "-" for high precision
    std::vector<std::string> formats;
  };
  const std::string h = "bf16", i = "int8", e = "e4m3fn", w = "e5m2";
  const std::vector<Case> cases = {
      {"standard", {"-", "-", "-", "-", "-", "-"}, {h, h, h, h, h, h}},
      {"switchback", {"row", "tensor", "row", "tensor", "-", "-"}, {i, i, i, i, h, h}},
      {"switchback-m", {"row", "tensor", "row", "tensor", "-", "-"}, {i, i, i, i, h, h}},
      {"switchback-q", {"row", "row", "row", "row", "-", "-"}, {i, i, i, i, h, h}},
      {"llm-int8", {"row", "row", "row", "row", "row", "row"}, {i, i, i, i, i, i}},
      {"llm-int8-tensor-w", {"row", "tensor", "row", "tensor", "row", "row"}, {i, i, i, i, i, i}},
      {"tensor-wise",
       {"tensor", "tensor", "tensor", "tensor", "tensor", "tensor"},
       {i, i, i, i, i, i}},
      {"row-wise-gw-hp", {"row", "row", "row", "tensor", "-", "-"}, {e, e, e, e, h, h}},
      {"te-hybrid",
       {"tensor", "tensor", "tensor", "tensor", "tensor", "tensor"},
       {e, e, w, e, w, e}},
      {"e5m2-backward",
       {"tensor", "tensor", "tensor", "tensor", "tensor", "tensor"},
       {e, e, w, w, w, w}},
      {"block",
       {"block:128", "tile:128x128", "block:128", "tile:128x128", "block:128", "block:128"},
       {e, e, e, e, e, e}},
      {"mx",
       {"block:32", "block:32", "block:32", "block:32", "block:32", "block:32"},
       {e, e, e, e, e, e}},
  };
  for (const Case& c : cases) {
    const LinearRecipe recipe = MakeLinearRecipe(Kind(c.kind));
    size_t at = 0;
    for (LinearGemm product : kProducts) {
      for (const OperandRecipe* operand : {&recipe[product].a, &recipe[product].b}) {
        SCOPED_TRACE(std::string(c.kind) + " " + std::string(ToString(product)) + " operand " +
                     std::to_string(at));
        EXPECT_EQ(operand->Unscaled(), c.layouts[at] == "-");
        if (c.layouts[at] != "-") {
          EXPECT_EQ(ToString(operand->layout), c.layouts[at]);
        }
        EXPECT_EQ(operand->format.name, c.formats[at]);
        EXPECT_FALSE(operand->delayed);
        EXPECT_EQ(operand->rounding.mode, RoundingMode::kNearestEven);
        ++at;
      }
    }
  }
}

TEST(MakeLinearRecipe, StochasticRoundingIsForQuantisedGAlone) {
  for (const LinearKind& kind : LinearKinds()) {
    if (kind.name == "standard") continue;
    LinearOptions options = Kind(std::string(kind.name));
    options.gradient_rounding.mode = RoundingMode::kStochastic;
    const LinearRecipe recipe = MakeLinearRecipe(options);
    const auto stochastic = [](const OperandRecipe& operand) {
      return operand.rounding.mode == RoundingMode::kStochastic;
    };
    for (LinearGemm product : kProducts) {
      EXPECT_FALSE(stochastic(recipe[product].b)) << kind.name;
      const bool quantised_g = product != LinearGemm::kForward && !recipe[product].a.Unscaled();
      EXPECT_EQ(stochastic(recipe[product].a), quantised_g) << kind.name << ToString(product);
    }
  }
}

TEST(MakeLinearRecipe, DelayedScalingIsOfAllSixOperandsOfTeHybrid) {
  LinearOptions options = Kind("te-hybrid");
  options.delayed = DelayedScalingOptions{.history = 16, .margin = 1};
  const LinearRecipe recipe = MakeLinearRecipe(options);
  EXPECT_EQ(recipe.delayed, options.delayed);
  for (LinearGemm product : kProducts) {
    for (const OperandRecipe* operand : {&recipe[product].a, &recipe[product].b}) {
      EXPECT_TRUE(operand->delayed);
      EXPECT_FALSE(operand->Unscaled());
      EXPECT_EQ(operand->layout.granularity, Granularity::kTensor);
    }
  }
}

TEST(MakeLinearRecipe, AccumulatorsAreExactForTwoInt8AndElseFp32) {
  const auto rule = [](const LinearOptions& options, LinearGemm product) {
    return ToString(MakeLinearRecipe(options)[product].accumulation);
  };
  EXPECT_EQ(rule(Kind("switchback"), LinearGemm::kForward), "exact");
  EXPECT_EQ(rule(Kind("switchback"), LinearGemm::kWeightGradient), "fp32");
  EXPECT_EQ(rule(Kind("standard"), LinearGemm::kForward), "fp32");
  EXPECT_EQ(rule(Kind("mx"), LinearGemm::kForward), "fp32");
  LinearOptions mixed = Kind("llm-int8");
  mixed.gradient_format = "e4m3fn";
  EXPECT_EQ(rule(mixed, LinearGemm::kForward), "exact");
  EXPECT_EQ(rule(mixed, LinearGemm::kInputGradient), "fp32");
}

TEST(MakeLinearRecipe, BlockScaledModesAreForTheirFormatsScalesAndBlocks) {
  LinearOptions options = Kind("mx");
  options.accumulate = "mxf8f6f4";
  EXPECT_EQ(RecipeError(options), kNoError);
  options.format = "e2m1fn";
  options.accumulate = "mxf4";
  EXPECT_EQ(RecipeError(options), kNoError);
  options.format = "e4m3fn";
  ExpectMessage(
      options,
      {"accumulate", "mxf4 is for e2m1fn, not for e4m3fn, an operand of the forward GEMM"});
  options.accumulate = "mxf8f6f4";
  options.scale_rule = "absmax";
  ExpectMessage(options,
                {"mxf8f6f4 takes scales of e8m0fnu, which the scale rule absmax does not give"});
  options.scale_rule = "nvfp4";
  ExpectMessage(options, {"scales of e8m0fnu", "nvfp4"});
  options.scale_rule = "";
  options.block = 48;
  ExpectMessage(options, {"mxf8f6f4 takes blocks of a multiple of 32 elements, not of 48"});
  options.block = 0;
  options.container = "bf16";
  ExpectMessage(options, {"accumulate", "no container"});
  options.container = "";
  options.high_operands = ParseOperandSet("weight-gradient.g");
  ExpectMessage(options, {"not for bf16, an operand of the weight-gradient GEMM"});
  options = Kind("mx");
  options.format = "e2m1fn";
  options.accumulate = "mxf4nvf4";
  ExpectMessage(options, {"scales of ue4m3fn", "e8m0"});
  options.scale_rule = "nvfp4";
  EXPECT_EQ(RecipeError(options), kNoError);
  options.block = 16;
  EXPECT_EQ(RecipeError(options), kNoError);
}

TEST(MakeLinearRecipe, WordsForFormatsWithScalesSetBlockAndRule) {
  LinearOptions options = Kind("mx");
  options.format = "nvfp4";
  options.accumulate = "mxf4nvf4";
  const LinearRecipe recipe = MakeLinearRecipe(options);
  for (const LinearGemm product : kProducts) {
    for (const OperandRecipe* operand : {&recipe[product].a, &recipe[product].b}) {
      EXPECT_EQ(operand->format.name, "e2m1fn");
      EXPECT_EQ(ToString(operand->layout), "block:16");
      EXPECT_EQ(operand->scale_rule, ScaleRule::kNvfp4);
    }
  }
  options.format = "MXFP6";
  options.accumulate = "mxf8f6f4";
  EXPECT_EQ(MakeLinearRecipe(options)[LinearGemm::kForward].a.format.name, "e3m2fn");
  options.scale_rule = "e8m0-even";
  options.block = 64;
  const OperandRecipe a = MakeLinearRecipe(options)[LinearGemm::kForward].a;
  EXPECT_EQ(a.scale_rule, ScaleRule::kE8m0Even);
  EXPECT_EQ(ToString(a.layout), "block:64");
  options = Kind("switchback");
  options.format = "mxfp8";
  ExpectMessage(options, {"format", "mxfp8 has scales of blocks, which kind 'switchback' has not"});
}

TEST(LinearGemm, HasNames) {
  EXPECT_EQ(ToString(LinearGemm::kForward), "forward");
  EXPECT_EQ(ToString(LinearGemm::kInputGradient), "input-gradient");
  EXPECT_EQ(ToString(LinearGemm::kWeightGradient), "weight-gradient");
}

}  // namespace
}  // namespace numsim
