// Which recipes a device runs: rules that need no device.
#include <gtest/gtest.h>

#include <string>

#include "numsim/base/error.h"
#include "numsim/linear/linear_recipe.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

LinearOptions KindOptions(const std::string& kind, const char* format = "") {
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
  for (const char* format : {"bf16", "fp16"}) {
    LinearOptions options = KindOptions("standard");
    options.high_precision = format;
    const LinearRecipe standard = ForDevice(MakeLinearRecipe(options));
    EXPECT_EQ(Rule(standard, LinearGemm::kForward), "hopper-bf16");  // hopper-fp16 is the same
    EXPECT_EQ(Rule(standard, LinearGemm::kInputGradient), "hopper-bf16");
    EXPECT_EQ(Rule(standard, LinearGemm::kWeightGradient), "trunc:25,16,8192");
  }

  const LinearRecipe int8 = ForDevice(MakeLinearRecipe(KindOptions("switchback")));
  EXPECT_EQ(Rule(int8, LinearGemm::kForward), "exact");
  EXPECT_EQ(Rule(int8, LinearGemm::kInputGradient), "exact");
  EXPECT_EQ(Rule(int8, LinearGemm::kWeightGradient), "trunc:25,16,8192");

  const LinearRecipe fp8 = ForDevice(MakeLinearRecipe(KindOptions("tensor-wise", "e4m3fn")));
  EXPECT_EQ(fp8[LinearGemm::kInputGradient].a.format.name, "e5m2");
  for (const LinearGemm product : kProducts) EXPECT_EQ(Rule(fp8, product), "hopper-fp8-fast");

  const LinearRecipe fp16 = ForDevice(MakeLinearRecipe(KindOptions("switchback", "fp16")));
  EXPECT_EQ(fp16[LinearGemm::kForward].accumulation, ParseAccumulationMode("hopper-fp16"));
}

TEST(ForDevice, LibraryTakesThePlaceOfRulesThatAreNotExact) {
  const LinearRecipe int8 = ForDevice(MakeLinearRecipe(KindOptions("switchback")), true);
  EXPECT_EQ(Rule(int8, LinearGemm::kForward), "exact");
  EXPECT_EQ(Rule(int8, LinearGemm::kWeightGradient), "library");
  const LinearRecipe fp8 = ForDevice(MakeLinearRecipe(KindOptions("llm-int8", "e4m3fn")), true);
  for (const LinearGemm product : kProducts) EXPECT_EQ(Rule(fp8, product), "library");
  EXPECT_EQ(Refusal(fp8), kNoError);
}

TEST(ForDevice, ChangesNothingButAccumulators) {
  const LinearRecipe before = MakeLinearRecipe(KindOptions("switchback-m", "e4m3fn"));
  const LinearRecipe after = ForDevice(before);
  EXPECT_EQ(after.kind, before.kind);
  EXPECT_EQ(after.saves, before.saves);
  for (const LinearGemm product : kProducts) {
    EXPECT_EQ(after[product].a, before[product].a);
    EXPECT_EQ(after[product].b, before[product].b);
  }
}

TEST(ForDevice, PutsOtherFormatsIntoAContainer) {
  for (const char* format : {"e3m4", "e2m1fn", "e2m3fn", "e4m3b11fnuz", "bnb-e4m3", "e5m2"}) {
    const LinearRecipe recipe = ForDevice(MakeLinearRecipe(KindOptions("switchback", format)));
    ASSERT_TRUE(recipe[LinearGemm::kForward].container.has_value()) << format;
    EXPECT_EQ(recipe[LinearGemm::kForward].container->name, "bf16") << format;
    EXPECT_EQ(Rule(recipe, LinearGemm::kForward), "hopper-bf16") << format;
    EXPECT_FALSE(recipe[LinearGemm::kWeightGradient].container.has_value()) << format;
  }
  LinearOptions mixed = KindOptions("switchback", "fp16");
  mixed.gradient_format = "e4m3fn";
  EXPECT_EQ(ForDevice(MakeLinearRecipe(mixed))[LinearGemm::kInputGradient].container->name, "fp16");
  // Powers of two enter the operands; other scales of blocks cannot.
  EXPECT_EQ(ForDevice(MakeLinearRecipe(KindOptions("mx")))[LinearGemm::kForward].container->name,
            "bf16");
  LinearOptions short_blocks = KindOptions("block");
  short_blocks.scale_rule = "absmax";
  short_blocks.block = 64;
  EXPECT_FALSE(
      ForDevice(MakeLinearRecipe(short_blocks))[LinearGemm::kForward].container.has_value());
  short_blocks.scale_rule = "pow2-ceil";
  EXPECT_EQ(ForDevice(MakeLinearRecipe(short_blocks))[LinearGemm::kForward].container.value().name,
            "bf16");
}

TEST(ForDevice, LeavesScalesOfBlocksOfBytesOutside) {
  for (const char* scale_rule : {"pow2-ceil", "absmax"}) {
    LinearOptions options = KindOptions("block");
    options.scale_rule = scale_rule;
    // cuBLASLt does not serve such scales, so that mode library does not either.
    for (const bool library : {false, true}) {
      const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options), library);
      for (const LinearGemm product : kProducts) {
        EXPECT_FALSE(recipe[product].container.has_value());
        EXPECT_EQ(Rule(recipe, product), "hopper-fp8-fast");
      }
    }
    options.format = "int8";
    EXPECT_EQ(Rule(ForDevice(MakeLinearRecipe(options)), LinearGemm::kForward), "exact");
  }
}

// The options of a recipe whose GEMMs all run on tensor cores.
LinearOptions OnTensorCores(LinearOptions options) {
  if (options.kind != "standard") options.accumulate = "tensor-cores";
  options.high_precision_accumulate = "tensor-cores";
  return options;
}

TEST(TensorCores, AreAWordOfARecipe) {
  for (const LinearKind& kind : LinearKinds()) {
    for (const char* format : {"int8", "e4m3fn", "bf16", "e2m1fn"}) {
      const std::string name(kind.name);
      const LinearOptions options = KindOptions(name, name == "standard" ? "" : format);
      const LinearRecipe expected = ForDevice(MakeLinearRecipe(options));
      const LinearRecipe recipe = MakeLinearRecipe(OnTensorCores(options));
      for (const LinearGemm product : kProducts) {
        SCOPED_TRACE(name + " " + format + " " + std::string(ToString(product)));
        EXPECT_EQ(Rule(recipe, product), Rule(expected, product));
        EXPECT_EQ(recipe[product].container.has_value(), expected[product].container.has_value());
        EXPECT_TRUE(Rule(recipe, product) == "exact" ||
                    Rule(recipe, product) == "trunc:25,16,8192" ||
                    Rule(recipe, product).starts_with("hopper-"));
      }
    }
  }
}

TEST(TensorCores, ServeOnlyTheGemmsOfTheirOption) {
  LinearOptions options = KindOptions("switchback", "e4m3fn");
  options.accumulate = "tensor-cores";
  const LinearRecipe recipe = MakeLinearRecipe(options);
  EXPECT_EQ(Rule(recipe, LinearGemm::kForward), "hopper-fp8-fast");
  EXPECT_EQ(Rule(recipe, LinearGemm::kWeightGradient), "fp32");
}

TEST(TensorCores, AreRefusedWhereTheyServeNothing) {
  LinearOptions wide = KindOptions("standard");
  wide.high_precision = "fp32";
  EXPECT_EQ(
      ErrorOf([&] { MakeLinearRecipe(OnTensorCores(wide)); }),
      "kind 'standard', forward product: tensor cores do not multiply fp32 by fp32; they take int8 "
      "x int8, e4m3fn and e5m2 but not two e5m2, bf16 x bf16, fp16 x fp16; others need a container, "
      "or mode fp32");
  LinearOptions blocks = KindOptions("block", "int8");
  blocks.scale_rule = "absmax";
  blocks.block = 64;
  const std::string refusal = ErrorOf([&] { MakeLinearRecipe(OnTensorCores(blocks)); });
  EXPECT_NE(refusal.find("scales of layout block:64"), std::string::npos) << refusal;
}

TEST(CheckOnDevice, TakesEveryKindAndFormat) {
  for (const LinearKind& kind : LinearKinds()) {
    for (const char* format :
         {"int8", "e4m3fn", "fp16", "bf16", "e3m4", "e5m2", "e2m1fn", "bnb-e4m3"}) {
      const bool standard = kind.name == "standard";
      const LinearOptions options = KindOptions(std::string(kind.name), standard ? "" : format);
      EXPECT_EQ(RefusalOf(options), kNoError) << kind.name << " " << format;
      EXPECT_EQ(Refusal(MakeLinearRecipe(options)), kNoError) << kind.name << " " << format;
    }
  }
  LinearOptions hybrid = KindOptions("row-wise-gw-hp");
  hybrid.gradient_format = "e5m2";
  hybrid.accumulate = "hopper-fp8";
  hybrid.high_precision_accumulate = "hopper-bf16";
  EXPECT_EQ(Refusal(MakeLinearRecipe(hybrid)), kNoError);
  hybrid.high_precision_accumulate = "trunc:25,16,48";
  EXPECT_EQ(Refusal(MakeLinearRecipe(hybrid)), kNoError);
  LinearOptions delayed = KindOptions("te-hybrid");
  delayed.delayed = DelayedScalingOptions{};
  delayed.high_precision = "fp32";
  EXPECT_EQ(RefusalOf(delayed), kNoError);
}

TEST(CheckOnDevice, ScalesOfShortBlocksNeedAContainer) {
  LinearOptions options = KindOptions("block");
  options.accumulate = "hopper-fp8-fast";
  EXPECT_EQ(Refusal(MakeLinearRecipe(options)), kNoError);
  options.block = 256;
  EXPECT_EQ(Refusal(MakeLinearRecipe(options)), kNoError);
  options.accumulate = "hopper-fp8";
  EXPECT_NE(Refusal(MakeLinearRecipe(options)).find("of 128 alone under mode hopper-fp8"),
            std::string::npos);
  options.block = 128;
  EXPECT_EQ(Refusal(MakeLinearRecipe(options)), kNoError);
  options.accumulate = "library";  // cuBLASLt takes no scales of blocks
  EXPECT_NE(Refusal(MakeLinearRecipe(options)).find("scales of layout block:128"),
            std::string::npos);
  options.block = 64;
  options.accumulate = "hopper-fp8-fast";
  EXPECT_EQ(
      Refusal(MakeLinearRecipe(options)),
      "kind 'block', forward product: scales of layout block:64; tensor cores take tensor, row "
      "and, for 8-bit operands, blocks of multiples of 128 (of 128 alone under mode hopper-fp8); "
      "others need a container, or mode fp32");
  options.container = "bf16";
  options.accumulate = "hopper-bf16";
  EXPECT_EQ(Refusal(MakeLinearRecipe(options)), kNoError);
}

TEST(CheckOnDevice, PairsOfFormatsThatNoMatrixUnitTakesAreErrors) {
  LinearOptions options = KindOptions("switchback", "e3m4");
  options.accumulate = "hopper-bf16";
  EXPECT_EQ(
      Refusal(MakeLinearRecipe(options)),
      "kind 'switchback', forward product: tensor cores do not multiply e3m4 by e3m4; they take "
      "int8 x int8, e4m3fn and e5m2 but not two e5m2, bf16 x bf16, fp16 x fp16; others need a "
      "container, or mode fp32");
}

TEST(CheckOnDevice, AccumulatorsOfNoMatrixUnitAreErrors) {
  LinearOptions options = KindOptions("tensor-wise", "e4m3fn");
  options.accumulate = "hopper-bf16";
  EXPECT_EQ(
      Refusal(MakeLinearRecipe(options)),
      "kind 'tensor-wise', forward product: a device does not add e4m3fn x e4m3fn under mode "
      "hopper-bf16; it has hopper-fp8-fast, hopper-fp8, library, and fp32, fp64 and fp32-chunked "
      "for all formats");
  options.accumulate = "trunc:13,32,256";  // fp8 has no parts but those of hopper-fp8
  EXPECT_NE(Refusal(MakeLinearRecipe(options)), kNoError);
  LinearOptions wide = KindOptions("standard");
  wide.high_precision_accumulate = "trunc:24,16,64";
  EXPECT_EQ(Refusal(MakeLinearRecipe(wide)),
            "kind 'standard', forward product: a device does not add bf16 x bf16 under mode "
            "trunc:24,16,64; it has hopper-bf16, trunc:25,16,PROMOTE, library, and fp32, fp64 and "
            "fp32-chunked for all formats");
  LinearOptions int8 = KindOptions("tensor-wise");
  int8.accumulate = "library";
  EXPECT_NE(Refusal(MakeLinearRecipe(int8)), kNoError);
}

TEST(Container, HoldsEveryValueOfItsOperandsOrIsRefused) {
  const auto refusal =
      [](const char* kind, const char* format, const char* container, const char* rule) {
        LinearOptions options = KindOptions(kind, format);
        options.container = container;
        options.scale_rule = rule;
        return ErrorOf([&] { MakeLinearRecipe(options); });
      };
  EXPECT_EQ(refusal("tensor-wise", "e3m4", "bf16", ""), kNoError);
  EXPECT_EQ(refusal("tensor-wise", "fp16", "bf16", ""),
            "container: bf16 does not hold every value of fp16, an operand of the forward GEMM");
  EXPECT_EQ(refusal("switchback", "e5m2", "fp16", ""), kNoError);
  EXPECT_EQ(refusal("tensor-wise", "bf16", "fp16", ""),
            "container: fp16 does not hold every value of bf16, an operand of the forward GEMM");
  EXPECT_EQ(
      refusal("block", "e4m3fn", "bf16", "absmax"),
      "container: scales of blocks enter the operands, so scale_rule must give powers of two, "
      "as pow2-floor, pow2-ceil and e8m0 do, not absmax");
  EXPECT_EQ(refusal("standard", "", "bf16", ""), "container: kind 'standard' has no such option");
  EXPECT_EQ(refusal("switchback", "", "fp32", ""),
            "container: format 'fp32' is not one of bf16, fp16");
}

}  // namespace
}  // namespace numsim
