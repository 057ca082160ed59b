// Which recipes a device runs: rules that need no device.
#include <gtest/gtest.h>

#include <string>

#include "numsim/base/error.h"
#include "numsim/linear/linear_device.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

LinearOptions Options(const char* kind, const char* format = "") {
  LinearOptions options;
  options.kind = kind;
  options.format = format;
  return options;
}

std::string Rule(const LinearRecipe& recipe, LinearGemm product) {
  return ToString(recipe[product].accumulation);
}

// Returns the message of the Error of CheckOnDevice, or kNoError.
std::string Refusal(const LinearRecipe& recipe) {
  return ErrorOf([&] { CheckOnDevice(recipe); });
}

std::string RefusalOf(const LinearOptions& options) {
  return Refusal(ForDevice(MakeLinearRecipe(options)));
}

TEST(ForDevice, TakesTheRulesOfHoppersTensorCores) {
  const LinearRecipe standard = ForDevice(MakeLinearRecipe(Options("standard")));
  for (const LinearGemm product : kProducts) EXPECT_EQ(Rule(standard, product), "hopper-bf16");

  const LinearRecipe int8 = ForDevice(MakeLinearRecipe(Options("switchback")));
  EXPECT_EQ(Rule(int8, LinearGemm::kForward), "exact");
  EXPECT_EQ(Rule(int8, LinearGemm::kInputGradient), "exact");
  EXPECT_EQ(Rule(int8, LinearGemm::kWeightGradient), "hopper-bf16");

  const LinearRecipe fp8 = ForDevice(MakeLinearRecipe(Options("tensor-wise", "e4m3fn")));
  EXPECT_EQ(fp8[LinearGemm::kInputGradient].a.format.name, "e5m2");
  for (const LinearGemm product : kProducts) EXPECT_EQ(Rule(fp8, product), "hopper-fp8-fast");

  const LinearRecipe fp16 = ForDevice(MakeLinearRecipe(Options("switchback", "fp16")));
  EXPECT_EQ(fp16[LinearGemm::kForward].accumulation, ParseAccumulationMode("hopper-fp16"));
}

TEST(ForDevice, LibraryTakesThePlaceOfRulesThatAreNotExact) {
  const LinearRecipe int8 = ForDevice(MakeLinearRecipe(Options("switchback")), true);
  EXPECT_EQ(Rule(int8, LinearGemm::kForward), "exact");
  EXPECT_EQ(Rule(int8, LinearGemm::kWeightGradient), "library");
  const LinearRecipe fp8 = ForDevice(MakeLinearRecipe(Options("llm-int8", "e4m3fn")), true);
  for (const LinearGemm product : kProducts) EXPECT_EQ(Rule(fp8, product), "library");
  EXPECT_EQ(Refusal(fp8), kNoError);
}

TEST(ForDevice, ChangesNothingButAccumulators) {
  const LinearRecipe before = MakeLinearRecipe(Options("switchback-m", "e4m3fn"));
  const LinearRecipe after = ForDevice(before);
  EXPECT_EQ(after.kind, before.kind);
  EXPECT_EQ(after.saves, before.saves);
  for (const LinearGemm product : kProducts) {
    EXPECT_EQ(after[product].a, before[product].a);
    EXPECT_EQ(after[product].b, before[product].b);
  }
  const LinearRecipe odd = ForDevice(MakeLinearRecipe(Options("switchback", "e3m4")));
  EXPECT_EQ(Rule(odd, LinearGemm::kForward), "fp32");
}

TEST(CheckOnDevice, TakesTheKindsWithScalesOfTensorsAndRows) {
  for (const char* kind : {"switchback",
                           "switchback-m",
                           "switchback-q",
                           "llm-int8",
                           "llm-int8-tensor-w",
                           "tensor-wise",
                           "te-hybrid"}) {
    for (const char* format : {"int8", "e4m3fn", "fp16", "bf16"}) {
      EXPECT_EQ(RefusalOf(Options(kind, format)), kNoError) << kind << " " << format;
    }
  }
  EXPECT_EQ(RefusalOf(Options("standard")), kNoError);
  EXPECT_EQ(RefusalOf(Options("row-wise-gw-hp")), kNoError);
  LinearOptions hybrid = Options("row-wise-gw-hp");
  hybrid.gradient_format = "e5m2";
  EXPECT_EQ(RefusalOf(hybrid), kNoError);
  hybrid.accumulate = "hopper-fp8";
  hybrid.high_precision_accumulate = "hopper-bf16";
  EXPECT_EQ(Refusal(MakeLinearRecipe(hybrid)), kNoError);
}

TEST(CheckOnDevice, ScalesAlongTheInnerDimensionAreAnError) {
  EXPECT_EQ(RefusalOf(Options("block")),
            "kind 'block', forward product: scales of layout block:128; a device takes tensor and "
            "row, not scales that change along the inner dimension");
  EXPECT_EQ(RefusalOf(Options("mx")),
            "kind 'mx', forward product: scales of layout block:32; a device takes tensor and row, "
            "not scales that change along the inner dimension");
}

TEST(CheckOnDevice, DelayedScalingIsAnError) {
  LinearOptions options = Options("te-hybrid");
  options.delayed = DelayedScalingOptions{};
  EXPECT_EQ(RefusalOf(options), "kind 'te-hybrid': a device has no delayed scaling");
}

TEST(CheckOnDevice, AHighPrecisionThatIsNotBf16IsAnError) {
  for (const char* format : {"fp32", "fp16"}) {
    LinearOptions options = Options("switchback");
    options.high_precision = format;
    EXPECT_EQ(RefusalOf(options),
              std::string("high_precision: ") + format + "; tensors on a device are bf16");
  }
}

TEST(CheckOnDevice, PairsOfFormatsThatNoMatrixUnitTakesAreErrors) {
  const std::string takes =
      "; it takes int8 x int8, e4m3fn and e5m2 but not two e5m2, bf16 x bf16, fp16 x fp16";
  EXPECT_EQ(RefusalOf(Options("switchback", "e3m4")),
            "kind 'switchback', forward product: a device does not multiply e3m4 by e3m4" + takes);
  EXPECT_EQ(RefusalOf(Options("switchback", "e5m2")),
            "kind 'switchback', forward product: a device does not multiply e5m2 by e5m2" + takes);
  LinearOptions mixed = Options("switchback", "e4m3fn");
  mixed.gradient_format = "int8";
  EXPECT_EQ(RefusalOf(mixed),
            "kind 'switchback', input-gradient product: a device does not multiply int8 by e4m3fn" +
                takes);
}

TEST(CheckOnDevice, AccumulatorsOfNoMatrixUnitAreErrors) {
  EXPECT_EQ(Refusal(MakeLinearRecipe(Options("switchback"))),
            "kind 'switchback', weight-gradient product: a device does not add bf16 x bf16 by rule "
            "fp32; it has hopper-bf16, library");
  LinearOptions options = Options("tensor-wise", "e4m3fn");
  options.accumulate = "hopper-bf16";
  EXPECT_EQ(Refusal(MakeLinearRecipe(options)),
            "kind 'tensor-wise', forward product: a device does not add e4m3fn x e4m3fn by rule "
            "hopper-bf16; it has hopper-fp8-fast, hopper-fp8, library");
  LinearOptions int8 = Options("tensor-wise");
  int8.accumulate = "library";
  EXPECT_NE(Refusal(MakeLinearRecipe(int8)), kNoError);
}

}  // namespace
}  // namespace numsim
