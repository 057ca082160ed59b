// The layers on the device equal those of the CPU, bit for bit after rounding to bf16.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "tests/linear/linear_device_problem.h"
#include "tests/support/device_test.h"

namespace numsim {
namespace {

struct LayerCase {
  std::string kind, format, gradient_format;
  std::string accumulate;  // of quantised operands; empty: that of ForDevice
};

void PrintTo(const LayerCase& c, std::ostream* out) {
  *out << c.kind << " " << c.format << " " << c.gradient_format << " " << c.accumulate;
}

const LayerCase kCases[] = {
    {"standard", "", "", ""},
    {"switchback", "int8", "", ""},
    {"switchback", "e4m3fn", "", ""},
    {"switchback", "e4m3fn", "e5m2", ""},
    {"switchback", "e4m3fn", "", "hopper-fp8"},
    {"switchback", "fp16", "", ""},
    {"switchback-m", "int8", "", ""},
    {"switchback-m", "e4m3fn", "e5m2", ""},
    {"switchback-m", "bf16", "", ""},
    {"switchback-q", "int8", "", ""},
    {"switchback-q", "e4m3fn", "e5m2", ""},
    {"llm-int8", "int8", "", ""},
    {"llm-int8", "e4m3fn", "e5m2", ""},
    {"llm-int8-tensor-w", "int8", "", ""},
    {"tensor-wise", "int8", "", ""},
    {"tensor-wise", "e4m3fn", "", ""},
    {"tensor-wise", "e4m3fn", "e4m3fn", ""},
    {"tensor-wise", "e4m3fn", "", "hopper-fp8"},
    {"row-wise-gw-hp", "e4m3fn", "", ""},
    {"row-wise-gw-hp", "e4m3fn", "e5m2", ""},
    {"te-hybrid", "e4m3fn", "", ""},
    {"te-hybrid", "int8", "", ""},
};

constexpr LinearShape kShapes[] = {
    {1, 1, 1}, {3, 5, 7}, {16, 32, 48}, {33, 65, 17}, {128, 256, 64}, {200, 136, 264}};
constexpr LinearShape kSmall{33, 48, 29};
constexpr RandomStream kRandom{.seed = 5, .stream = 6};

LinearRecipe RecipeOf(const LayerCase& c, bool stochastic = false) {
  LinearOptions options;
  options.kind = c.kind;
  options.format = c.format;
  options.gradient_format = c.gradient_format;
  if (stochastic) {
    options.gradient_rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
  }
  LinearRecipe recipe = ForDevice(MakeLinearRecipe(options));
  if (!c.accumulate.empty()) {
    for (GemmRecipe& product : recipe.products) {
      if (product.a.format.spec != Bf16())
        product.accumulation = ParseAccumulationMode(c.accumulate);
    }
  }
  return recipe;
}

// Row-wise heavy tails: a few elements are far beyond the others.
LinearProblem HeavyTailed(LinearShape shape) {
  LinearProblem p = UnevenProblem(shape);
  for (naive::Matrix* m : {&p.x, &p.w, &p.g}) {
    for (float& value : m->data) value = value * value * value;
  }
  return InBf16(p);
}

class DeviceLinearTest : public DeviceTestOf<LayerCase> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " does not follow the hopper rules";
  }

  void ExpectAsOnTheCpu(DeviceLinear& layer,
                        const LinearProblem& p,
                        RandomStream random = kRandom,
                        Wanted wanted = {}) {
    ExpectSameBits(StepOnDevice(layer, p, stream(), random, wanted),
                   ExpectedOnDevice(layer.recipe(), p, random, wanted));
  }
};

TEST_P(DeviceLinearTest, EqualsTheCpuAtEveryShape) {
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", shape.tokens, shape.in, shape.out));
    DeviceLinear layer(RecipeOf(GetParam()));
    ExpectAsOnTheCpu(layer, InBf16(UnevenProblem(shape)));
  }
}

TEST_P(DeviceLinearTest, DrawsAsTheCpuDoes) {
  if (GetParam().kind == "standard") GTEST_SKIP() << "standard rounds no gradient";
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", shape.tokens, shape.in, shape.out));
    DeviceLinear layer(RecipeOf(GetParam(), true));
    ExpectAsOnTheCpu(layer, InBf16(UnevenProblem(shape)));
  }
}

// Larger, smaller and larger again, with other values and draws: buffers of earlier steps hold
// other codes.
TEST_P(DeviceLinearTest, StepsOneAfterAnotherDoNotDisturbEachOther) {
  DeviceLinear layer(RecipeOf(GetParam(), GetParam().kind != "standard"));
  uint64_t step = 0;
  for (const LinearShape& shape : {kShapes[3], kShapes[1], kShapes[4], kShapes[4], kShapes[2]}) {
    SCOPED_TRACE(step);
    const LinearProblem p = step % 2 == 0 ? HeavyTailed(shape) : InBf16(UnevenProblem(shape));
    ExpectAsOnTheCpu(layer, p, {.seed = 5, .stream = step++});
  }
}

TEST_P(DeviceLinearTest, GradientsThatAreNotWantedAreNotWritten) {
  const LinearProblem p = InBf16(UnevenProblem(kSmall));
  for (const Wanted wanted : {Wanted{true, false}, Wanted{false, true}, Wanted{false, false}}) {
    SCOPED_TRACE(fmt::format("dx {} dw {}", wanted.dx, wanted.dw));
    DeviceLinear layer(RecipeOf(GetParam(), GetParam().kind != "standard"));
    ExpectAsOnTheCpu(layer, p, kRandom, wanted);
  }
}

TEST_P(DeviceLinearTest, ZerosAndRowsOfZerosAreAsOnTheCpu) {
  LinearProblem p = HeavyTailed(kSmall);
  std::fill_n(p.x.data.begin(), 2 * kSmall.in, 0.0f);
  std::fill_n(p.g.data.begin(), kSmall.out, -0.0f);
  DeviceLinear layer(RecipeOf(GetParam()));
  ExpectAsOnTheCpu(layer, p);
  std::ranges::fill(p.x.data, 0.0f);
  std::ranges::fill(p.g.data, 0.0f);
  ExpectAsOnTheCpu(layer, p);
}

TEST_P(DeviceLinearTest, NanAndInfinitiesAreAsOnTheCpu) {
  const float infinity = std::numeric_limits<float>::infinity();
  LinearProblem p = InBf16(UnevenProblem(kSmall));
  p.x.data[3] = std::nanf("");
  p.x.data[kSmall.in + 4] = infinity;
  p.x.data[2 * kSmall.in + 5] = -infinity;
  p.g.data[7 * kSmall.out + 1] = -infinity;
  p.g.data[9 * kSmall.out + 2] = std::nanf("");
  p.w.data[kSmall.in + 2] = infinity;
  DeviceLinear layer(RecipeOf(GetParam()));
  ExpectAsOnTheCpu(layer, p);
}

TEST_P(DeviceLinearTest, AnEmptyDimensionGivesZerosOrNothing) {
  for (const LinearShape& shape : {LinearShape{0, 16, 32}, {16, 0, 32}, {16, 32, 0}, {0, 0, 0}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", shape.tokens, shape.in, shape.out));
    DeviceLinear layer(RecipeOf(GetParam()));
    ExpectAsOnTheCpu(layer, InBf16(UnevenProblem(shape)));
  }
}

// The bytes that are saved are those that are counted: with codes, X and W are not looked at again.
TEST_P(DeviceLinearTest, KeptBytesAreThoseThatBackwardReads) {
  const LinearProblem p = InBf16(UnevenProblem(kSmall));
  DeviceLinear layer(RecipeOf(GetParam()));
  EXPECT_EQ(layer.SavedBytes(), 0u);
  DeviceProblem on_device(p, stream());
  ForwardOnDevice(layer, on_device, stream(), kRandom);

  Linear on_cpu(layer.recipe());
  std::vector<float> y(p.g.data.size());
  LinearSaved saved;
  on_cpu.Forward(p.x.data, p.w.data, p.Shape(), y, saved);
  const size_t elements = p.x.data.size() + p.w.data.size();
  EXPECT_EQ(layer.SavedBytes(), GetParam().kind == "tensor-wise" ? elements + 8 : saved.Bytes());

  if (!layer.KeepsCodes()) return;
  on_device.x.Spoil(stream());
  on_device.w.Spoil(stream());
  BackwardOnDevice(layer, on_device, stream(), kRandom);
  ExpectSameBits(ResultsOf(on_device, stream()), ExpectedOnDevice(layer.recipe(), p, kRandom));
}

// Recipes that no kind has.
class DeviceLinearRecipeTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped() && !Device().IsHopper()) GTEST_SKIP() << Device().name << " is no Hopper";
  }

  void ExpectAsOnTheCpu(const LinearRecipe& recipe) {
    LinearProblem p = InBf16(UnevenProblem(kSmall));
    p.x.data[7] = std::numeric_limits<float>::infinity();  // saturates where the recipe says so
    DeviceLinear layer(recipe);
    for (uint64_t step : {6, 7}) {
      const RandomStream random{.seed = 5, .stream = step};
      ExpectSameBits(StepOnDevice(layer, p, stream(), random), ExpectedOnDevice(recipe, p, random));
    }
  }
};

// Other operands draw otherwise: codes that could otherwise be shared are made again.
TEST_F(DeviceLinearRecipeTest, StochasticXAndWAreDrawnForEachProduct) {
  const Rounding stochastic{RoundingMode::kStochastic, StochasticVariant::kB, 8};
  for (const bool x : {true, false}) {
    LinearRecipe recipe = RecipeOf({"tensor-wise", "e4m3fn", "", ""});
    GemmRecipe& other = recipe[x ? LinearGemm::kWeightGradient : LinearGemm::kInputGradient];
    (x ? recipe[LinearGemm::kForward].a : recipe[LinearGemm::kForward].b).rounding = stochastic;
    other.b.rounding = stochastic;
    EXPECT_FALSE(DeviceLinear(recipe).KeepsCodes());
    ExpectAsOnTheCpu(recipe);
  }
}

TEST_F(DeviceLinearRecipeTest, KeptCodesOfXAreDequantisedToBeQuantisedAlongTheTokens) {
  for (const char* format : {"int8", "e4m3fn"}) {
    LinearRecipe recipe = RecipeOf({"switchback-m", format, "", ""});
    recipe[LinearGemm::kWeightGradient] =
        RecipeOf({"llm-int8", format, "", ""})[LinearGemm::kWeightGradient];
    ExpectAsOnTheCpu(recipe);
  }
}

TEST_F(DeviceLinearRecipeTest, HighPrecisionIsKeptWhereNothingElseMayBeRead) {
  LinearRecipe recipe = RecipeOf({"standard", "", "", ""});
  recipe.saves = LinearSaves::kQuantized;
  ExpectAsOnTheCpu(recipe);
}

INSTANTIATE_TEST_SUITE_P(Layers,
                         DeviceLinearTest,
                         testing::ValuesIn(kCases),
                         [](const auto& layer) {
                           std::string name = fmt::format("{}_{}_{}_{}",
                                                          layer.param.kind,
                                                          layer.param.format,
                                                          layer.param.gradient_format,
                                                          layer.param.accumulate);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace numsim
