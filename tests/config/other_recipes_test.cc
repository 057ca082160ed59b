// Every named recipe of TransformerEngine 2.20 and torchao 0.18: how it is expressed here, or what is
// missing. docs/mx.md shows the list.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/formats/decode.h"
#include "numsim/linear/linear.h"
#include "numsim/random/distributions.h"
#include "tests/support/doc_page.h"

namespace numsim {
namespace {

struct OtherRecipe {
  std::string name;
  std::string keys;     // KEY=VALUE, separated by blanks; empty: not expressible
  std::string missing;  // why not, or what differs
};

// transformer_engine/common/recipe/__init__.py, with the parameters of each recipe, and the factories for
// CustomRecipe in transformer_engine/pytorch/custom_recipes.
const OtherRecipe kTransformerEngine[] = {
    {"DelayedScaling", "recipe=fp8-delayed", ""},
    {"DelayedScaling(fp8_format=E4M3)", "recipe=fp8-delayed linear.gradient_format=e4m3fn", ""},
    {"DelayedScaling(margin, amax_history_len, amax_compute_algo)",
     "recipe=fp8-delayed linear.delayed_margin=1 linear.delayed_history=16 "
     "linear.delayed_algorithm=most-recent",
     "callables are not expressible"},
    {"Float8CurrentScaling", "recipe=fp8-current", ""},
    {"Float8CurrentScaling(use_power_2_scales)",
     "recipe=fp8-current linear.scale_rule=pow2-ceil",
     ""},
    {"MXFP8BlockScaling", "recipe=te-mxfp8", ""},
    {"MXFP8BlockScaling(fp8_format=HYBRID)", "recipe=te-mxfp8 linear.gradient_format=e5m2", ""},
    {"MXFP8BlockScaling(enable_2d_quantization)",
     "recipe=te-mxfp8 linear.kind=block linear.block=32",
     ""},
    {"Float8BlockScaling", "recipe=fp8-block", ""},
    {"Float8BlockScaling(use_f32_scales)", "recipe=fp8-block linear.scale_rule=absmax", ""},
    {"Float8BlockScaling(w_block_scaling_dim=1)",
     "recipe=fp8-block linear.kind=mx linear.block=128 linear.scale_rule=pow2-ceil",
     ""},
    {"Float8BlockScaling(x_block_scaling_dim=2 or grad_block_scaling_dim=2)",
     "",
     "no kind has tiles of X or of G"},
    {"NVFP4BlockScaling", "recipe=te-nvfp4", ""},
    {"NVFP4BlockScaling(disable_rht)",
     "recipe=te-nvfp4 linear.hadamard= linear.hadamard_signs=",
     ""},
    {"NVFP4BlockScaling(disable_stochastic_rounding)",
     "recipe=te-nvfp4 linear.gradient_rounding=rne",
     ""},
    {"NVFP4BlockScaling(disable_2d_quantization)", "recipe=te-nvfp4 linear.kind=mx", ""},
    {"NVFP4BlockScaling(row_scaled_activation)",
     "recipe=te-nvfp4-row-scaled",
     "without its columnwise copy of X, whose scale of the tensor stays one"},
    {"NVFP4BlockScaling(nvfp4_4over6=weights)",
     "recipe=te-nvfp4 linear.scale_rule=nvfp4-inverse,w=4over6-mae",
     ""},
    {"NVFP4BlockScaling(nvfp4_4over6=all, disable_rht)",
     "recipe=te-nvfp4 linear.scale_rule=nvfp4-inverse,x=4over6-mae,w=4over6-mae linear.hadamard= "
     "linear.hadamard_signs=",
     ""},
    {"NVFP4BlockScaling(nvfp4_4over6_err_mode=MSE)",
     "recipe=te-nvfp4 linear.scale_rule=nvfp4-inverse,w=4over6-mse",
     ""},
    {"NVFP4BlockScaling(nvfp4_4over6_e4m3_use_256=none)",
     "",
     "four over six has the bound of 256 alone"},
    {"any(backward_override=high_precision)",
     "recipe=te-nvfp4 linear.high_operands=input-gradient,weight-gradient",
     ""},
    {"any(backward_override=dequantized)",
     "recipe=te-nvfp4 linear.high_operands=input-gradient,weight-gradient "
     "linear.backward_from_codes=x,w",
     ""},
    {"any(fp8_dpa, fp8_mha)", "", "attention is not quantised"},
    {"CustomRecipe: high_precision_factory", "recipe=bf16", ""},
    {"CustomRecipe: delayed_scaling_factory", "recipe=fp8-delayed", ""},
    {"CustomRecipe: current_scaling_factory", "recipe=fp8-current", ""},
    {"CustomRecipe: float8_block_scaling_factory", "recipe=fp8-block", ""},
    {"CustomRecipe: mxfp8_factory", "recipe=te-mxfp8", ""},
    {"CustomRecipe: nvfp4_factory, nvfp4_ref_rht_2d_factory", "recipe=te-nvfp4", ""},
    {"CustomRecipe: high_precision_fwd_mxfp8_bwd_factory",
     "recipe=te-mxfp8 linear.high_operands=forward",
     ""},
    {"CustomRecipe: mxfp8_fwd_high_precision_bwd_factory",
     "recipe=te-mxfp8 linear.high_operands=input-gradient,weight-gradient "
     "linear.backward_from_codes=x,w",
     ""},
    {"CustomRecipe: mxfp8_fwd_nvfp4_bwd_factory", "", "X and W have one format in all GEMMs"},
    {"CustomRecipe: nvfp4_1d_weight_factory",
     "recipe=te-nvfp4 linear.kind=mx linear.backward_from_codes=w",
     ""},
    {"CustomRecipe: nvfp4_row_scaled_fwd_mxfp8_bwd_factory",
     "",
     "X and W have one format in all GEMMs"},
    {"CustomRecipe: nvfp4_row_scaled_fwd_high_precision_bwd_factory",
     "recipe=te-nvfp4-row-scaled linear.kind=mx "
     "linear.high_operands=input-gradient,weight-gradient linear.backward_from_codes=x,w",
     ""},
    {"CustomRecipe: nvfp4_linear_fp8_dpa_factory",
     "recipe=te-nvfp4",
     "the linear layers; attention is not quantised"},
};

// torchao/float8/config.py, torchao/prototype/moe_training/config.py and nvfp4_training.
const OtherRecipe kTorchao[] = {
    {"Float8LinearRecipeName.TENSORWISE",
     "recipe=bf16 linear.kind=tensor-wise linear.format=e4m3fn",
     ""},
    {"Float8LinearRecipeName.ROWWISE",
     "recipe=bf16 linear.kind=llm-int8 linear.format=e4m3fn linear.scale_rule=pow2-ceil",
     ""},
    {"Float8LinearRecipeName.ROWWISE_WITH_GW_HP", "recipe=fp8-row-wise", ""},
    {"Float8TrainingRecipe.FP8_ROWWISE",
     "recipe=bf16 linear.kind=llm-int8 linear.format=e4m3fn linear.scale_rule=pow2-ceil",
     "as a dense layer; there are no grouped GEMMs"},
    {"MXFP8TrainingRecipe.MXFP8_RCEIL, MXFP8_EMULATED_RCEIL",
     "recipe=te-mxfp8",
     "as a dense layer; there are no grouped GEMMs"},
    {"MXFP8TrainingRecipe.MXFP8_RCEIL_WGRAD_WITH_HP",
     "recipe=te-mxfp8 linear.high_operands=weight-gradient",
     ""},
    {"MXFP8TrainingOpConfig(scale_calculation_mode=FLOOR)", "recipe=fp8-mx", ""},
    {"NVFP4TrainingConfig", "recipe=nvidia-nvfp4 linear.hadamard_signs=0xD7E8", ""},
};

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// One step of a small layer. Returns the sum of magnitudes of its three results.
double StepOf(const LinearOptions& options) {
  const LinearShape shape{.tokens = 128, .in = 128, .out = 128};
  std::vector<float> x(128 * 128), w = x, g = x, y = x, dx = x, dw = x;
  FillNormal({.seed = 1, .stream = 1}, 0, x);
  FillNormal({.seed = 1, .stream = 2}, 0, w);
  FillNormal({.seed = 1, .stream = 3}, 0, g);
  Linear layer(MakeLinearRecipe(options));
  LinearSaved saved;
  layer.Forward(HostMatrix(std::span<const float>(x), shape.X()),
                HostMatrix(std::span<const float>(w), shape.W()),
                y,
                saved,
                {.seed = 1, .stream = 4});
  layer.Backward(g, w, saved, dx, dw, {.seed = 1, .stream = 4});
  double sum = 0;
  for (const std::vector<float>* result : {&y, &dx, &dw}) {
    double part = 0;
    for (const float value : *result) part += std::fabs(static_cast<double>(value));
    EXPECT_GT(part, 0);
    sum += part;
  }
  return sum;
}

void ExpectExpressed(const OtherRecipe& recipe, std::set<double>& sums) {
  SCOPED_TRACE(recipe.name);
  if (recipe.keys.empty()) {
    EXPECT_FALSE(recipe.missing.empty()) << "neither expressed nor said to be missing";
    return;
  }
  const TrainConfig config = ParseTrainConfig("", "test", {}, Words(recipe.keys));
  const double sum = StepOf(config.linear.all);
  EXPECT_TRUE(std::isfinite(sum));
  // The exact results have about 3 * 128^2 * 0.8 * sqrt(128); four bits change them by less than a tenth.
  EXPECT_NEAR(sum / 444900, 1, 0.1);
  sums.insert(sum);
}

// A recipe that no line expresses has a reason in its row; six have one. Recipes that differ compute
// different numbers.
TEST(OtherRecipes, EachIsExpressedAndRunsOrSaysWhatIsMissing) {
  std::set<double> te, ao;
  for (const OtherRecipe& recipe : kTransformerEngine) ExpectExpressed(recipe, te);
  for (const OtherRecipe& recipe : kTorchao) ExpectExpressed(recipe, ao);
  const auto missing = [](const auto& list) {
    return std::ranges::count_if(list, [](const OtherRecipe& r) { return r.keys.empty(); });
  };
  EXPECT_EQ(missing(kTransformerEngine), 5);
  EXPECT_EQ(missing(kTorchao), 0);
  EXPECT_GE(te.size(), 19u);
  EXPECT_EQ(ao.size(), 7u);
}

TEST(OtherRecipes, EachNamedRecipeRuns) {
  std::set<double> sums;
  for (const TrainRecipe& recipe : TrainRecipes()) {
    ExpectExpressed({std::string(recipe.name), "recipe=" + std::string(recipe.name), ""}, sums);
  }
  EXPECT_GE(sums.size(),
            TrainRecipes().size() - 4);  // fp8-delayed has three names, and fp8-fishman two
}

// The operands of the recipes of 4 bits, against the words of their sources.
TEST(OtherRecipes, TheRecipesOfFourBitsAreWhatTheirSourcesSay) {
  const auto recipe = [](const std::string& name) {
    return MakeLinearRecipe(ParseTrainConfig("", "test", {}, {"recipe=" + name}).linear.all);
  };
  const auto hadamard = [](const LinearRecipe& r, LinearGemm gemm) {
    return HadamardText(r[gemm].a.hadamard);
  };
  const LinearRecipe te = recipe("te-nvfp4");
  EXPECT_EQ(hadamard(te, LinearGemm::kForward), "");
  EXPECT_EQ(hadamard(te, LinearGemm::kInputGradient), "");
  EXPECT_EQ(hadamard(te, LinearGemm::kWeightGradient), "hadamard:16:0xD7E8");
  EXPECT_EQ(ToString(te[LinearOperand::kForwardW].layout), "tile:16x16");
  EXPECT_EQ(ToString(te[LinearOperand::kForwardX].layout), "block:16");
  EXPECT_EQ(te[LinearOperand::kWeightGradientG].rounding.mode, RoundingMode::kStochastic);
  EXPECT_EQ(te[LinearOperand::kWeightGradientX].rounding.mode, RoundingMode::kNearestEven);
  const LinearRecipe quartet = recipe("quartet-2");
  EXPECT_TRUE(quartet.x_from_codes && quartet.w_from_codes);
  EXPECT_EQ(quartet[LinearOperand::kForwardW].scale_rule, ScaleRule::kFourOverSixMse);
  EXPECT_EQ(quartet[LinearOperand::kInputGradientW].scale_rule, ScaleRule::kMsEden);
  EXPECT_EQ(hadamard(quartet, LinearGemm::kInputGradient), "hadamard:128:redrawn");
  const LinearRecipe ufp4 = recipe("ufp4");
  for (const LinearGemm gemm : kProducts) {
    EXPECT_EQ(hadamard(ufp4, gemm), "hadamard:16:random");
    EXPECT_EQ(MaxFinite(ufp4[gemm].a.format.spec), 3.5f);  // 7 steps of 0.5
  }
  const LinearRecipe amd = recipe("amd-mxfp4");
  EXPECT_EQ(amd[LinearOperand::kForwardX].scale_rule, ScaleRule::kE8m0Even);
  EXPECT_EQ(hadamard(amd, LinearGemm::kWeightGradient), "hadamard:16:fixed");
  EXPECT_EQ(recipe("te-nvfp4-row-scaled")[LinearOperand::kForwardX].scale_rule,
            ScaleRule::kNvfp4Row);
}

std::string Table(const char* project, std::span<const OtherRecipe> recipes) {
  std::string table = fmt::format("| {} | here | |\n| --- | --- | --- |\n", project);
  for (const OtherRecipe& recipe : recipes) {
    const std::string keys = recipe.keys.empty() ? "missing" : fmt::format("`{}`", recipe.keys);
    table += fmt::format("| `{}` | {} | {} |\n", recipe.name, keys, recipe.missing);
  }
  return table;
}

TEST(OtherRecipes, TablesOfThePageAreTheseLists) {
  const std::string page = SourceText("docs/mx.md");
  EXPECT_EQ(TableOf(page, "transformer-engine"), Table("TransformerEngine", kTransformerEngine));
  EXPECT_EQ(TableOf(page, "torchao"), Table("torchao", kTorchao));
}

}  // namespace
}  // namespace numsim
