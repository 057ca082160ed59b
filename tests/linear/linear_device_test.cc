// The layers on the device equal those of the CPU, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/linear/linear_device_problem.h"
#include "tests/support/device_test.h"

namespace numsim {
namespace {

// The modes of a case: those of ForDevice, those of the recipe (fp32), or a named one for quantised
// operands.
constexpr const char* kUnits = "";
constexpr const char* kOwn = "own";

struct LayerCase {
  std::string kind, format, gradient_format;
  std::string accumulate = kUnits;
  std::string high_precision = "";
  size_t delayed = 0;  // length of the history
  const char* high_operands = "";
};

void PrintTo(const LayerCase& c, std::ostream* out) {
  *out << c.kind << " " << c.format << " " << c.gradient_format << " " << c.accumulate;
}

// Every kind with each format that a device multiplies in its own way: natively, in a container, or
// one product after another; then what only some kinds have.
std::vector<LayerCase> Cases() {
  std::vector<LayerCase> cases = {{"standard", "", ""},
                                  {"standard", "", "", kOwn},
                                  {"standard", "", "", kUnits, "fp16"},
                                  {"standard", "", "", kOwn, "fp32"}};
  for (const std::string& kind : KindNames()) {
    if (kind == "standard") continue;
    for (const char* format : {"int8", "e4m3fn", "e3m4"}) {
      cases.push_back({kind, format, ""});
      cases.push_back({kind, format, "", kOwn});
    }
    cases.push_back({kind, "e4m3fn", "e5m2"});
    cases.push_back({kind, "fp16", "e5m2"});
  }
  const std::vector<LayerCase> others = {
      {"switchback", "e4m3fn", "", "hopper-fp8"},
      {"tensor-wise", "e4m3fn", "e4m3fn", "hopper-fp8"},
      {"switchback-m", "bf16", ""},
      {"llm-int8", "e5m2", ""},
      {"tensor-wise", "e2m1fn", ""},
      {"tensor-wise", "e2m3fn", ""},
      {"row-wise-gw-hp", "bnb-e4m3", ""},
      {"mx", "e2m1fn", ""},
      {"switchback", "binary8p3se", "", "fp32-chunked:16"},
      {"block", "e4m3fn", "", "fp32-chunked:32"},
      {"block", "e4m3fn", "", "hopper-fp8"},
      {"block", "e5m2", "e4m3fn"},
      {"llm-int8", "e4m3fn", "", "fp64"},
      {"switchback", "e4m3fn", "", kUnits, "fp32"},
      {"switchback-m", "int8", "", kUnits, "fp16"},
      {"tensor-wise", "e4m3fn", "", kOwn, "fp32"},
      {"te-hybrid", "e4m3fn", "", kUnits, "", 1},
      {"te-hybrid", "e4m3fn", "", kOwn, "", 3},
      {"e5m2-backward", "e4m3fn", "", kUnits, "", 2},
      {"tensor-wise", "e4m3fn", "", kUnits, "", 0, "weight-gradient.x"},
      {"switchback", "int8", "", kUnits, "", 0, "x"},
      {"llm-int8", "e4m3fn", "", kUnits, "", 0, "forward.x,weight-gradient.g"}};
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

constexpr LinearShape kShapes[] = {
    {1, 1, 1}, {3, 5, 7}, {16, 32, 48}, {33, 65, 17}, {128, 256, 64}, {200, 136, 264}};
constexpr LinearShape kSmall{33, 48, 29};
constexpr RandomStream kRandom{.seed = 5, .stream = 6};

LinearRecipe RecipeOf(const LayerCase& c, bool stochastic = false) {
  LinearOptions options;
  options.kind = c.kind;
  options.format = c.format;
  options.gradient_format = c.gradient_format;
  options.high_precision = c.high_precision;
  options.high_operands = ParseOperandSet(c.high_operands);
  if (c.delayed != 0) options.delayed = DelayedScalingOptions{.history = c.delayed};
  if (stochastic) {
    options.gradient_rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 16};
  }
  if (c.accumulate == kOwn) return MakeLinearRecipe(options);
  LinearRecipe recipe = ForDevice(MakeLinearRecipe(options));
  if (c.accumulate == kUnits) return recipe;
  for (GemmRecipe& product : recipe.products) {
    if (product.a.format.spec == Bf16()) continue;
    product.accumulation = ParseAccumulationMode(c.accumulate);
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

  // A layer on the device and the same one on the host.
  struct Layers {
    Layers(const LinearRecipe& recipe, Place place) : there(recipe, place), here(recipe) {}
    Linear there, here;
  };
  Layers LayersOf(const LayerCase& c, bool stochastic = false) {
    return Layers(RecipeOf(c, stochastic), place());
  }

  void ExpectAsOnTheCpu(Layers& layers,
                        const LinearProblem& p,
                        RandomStream random = kRandom,
                        Wanted wanted = {},
                        StoredElements stored = {}) {
    ExpectSameBits(StepOnDevice(layers.there, p, random, wanted, stored),
                   ExpectedOnDevice(layers.here, p, random, wanted, stored));
  }
};

TEST_P(DeviceLinearTest, EqualsTheCpuAtEveryShape) {
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", shape.tokens, shape.in, shape.out));
    Layers layers = LayersOf(GetParam());
    ExpectAsOnTheCpu(layers, InBf16(UnevenProblem(shape)));
    ExpectAsOnTheCpu(layers,
                     UnevenProblem(shape),
                     kRandom,
                     {},
                     {.tensors = Element::kFloat32, .dw = Element::kBfloat16});
  }
}

TEST_P(DeviceLinearTest, DrawsAsTheCpuDoes) {
  if (GetParam().kind == "standard") GTEST_SKIP() << "standard rounds no gradient";
  for (const LinearShape& shape : kShapes) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", shape.tokens, shape.in, shape.out));
    Layers layers = LayersOf(GetParam(), true);
    ExpectAsOnTheCpu(layers, InBf16(UnevenProblem(shape)));
  }
}

// Larger, smaller and larger again, with other values and draws: buffers of earlier steps hold
// other codes.
TEST_P(DeviceLinearTest, StepsOneAfterAnotherDoNotDisturbEachOther) {
  Layers layers = LayersOf(GetParam(), GetParam().kind != "standard");
  uint64_t step = 0;
  for (const LinearShape& shape : {kShapes[3], kShapes[1], kShapes[4], kShapes[4], kShapes[2]}) {
    SCOPED_TRACE(step);
    const LinearProblem p = step % 2 == 0 ? HeavyTailed(shape) : InBf16(UnevenProblem(shape));
    ExpectAsOnTheCpu(layers, p, {.seed = 5, .stream = step++});
  }
}

TEST_P(DeviceLinearTest, GradientsThatAreNotWantedAreNotWritten) {
  const LinearProblem p = InBf16(UnevenProblem(kSmall));
  for (const Wanted wanted : {Wanted{true, false}, Wanted{false, true}, Wanted{false, false}}) {
    SCOPED_TRACE(fmt::format("dx {} dw {}", wanted.dx, wanted.dw));
    Layers layers = LayersOf(GetParam(), GetParam().kind != "standard");
    ExpectAsOnTheCpu(layers, p, kRandom, wanted);
  }
}

// Forward fills memory of the caller, which is copied and then overwritten. Backward reads the
// copy.
TEST_P(DeviceLinearTest, WhatIsSavedMayLieInMemoryOfTheCallerAndMove) {
  const LinearProblem problem = InBf16(UnevenProblem(kSmall));
  for (const bool x_stays : {true, false}) {
    SCOPED_TRACE(x_stays ? "x stays" : "x does not stay");
    Layers layers = LayersOf(GetParam(), GetParam().kind != "standard");
    for (const uint64_t step : {0, 1}) {
      const RandomStream random{.seed = 5, .stream = step};
      DeviceProblem p(problem);
      const auto attach = [&](std::vector<Buffer<uint8_t>>& memory) {
        std::vector<MatrixSpan<uint8_t>> pieces;
        for (Buffer<uint8_t>& piece : memory) pieces.push_back(piece.View());
        layers.there.Attach(p.x.matrix(), p.w.matrix(), x_stays, pieces, p.saved);
      };
      std::vector<Buffer<uint8_t>> memory;
      for (const size_t bytes : layers.there.SavedBytes(p.x.matrix(), p.w.matrix(), x_stays)) {
        memory.emplace_back(place(), bytes);
      }
      attach(memory);
      const size_t allocated = AllocatedDeviceBytes();
      layers.there.Forward(
          p.x.matrix(), p.w.matrix(), p.y.matrix(), p.saved, random, nullptr, x_stays);
      EXPECT_TRUE(step == 0 || AllocatedDeviceBytes() == allocated);
      std::vector<Buffer<uint8_t>> moved = memory;
      for (Buffer<uint8_t>& piece : memory) {
        device_memory::FillBytes(piece.View().data, 0xFF, piece.View().Bytes(), stream());
      }
      if (!x_stays) p.x.Spoil();
      attach(moved);
      BackwardOnDevice(layers.there, p, random);
      ExpectSameBits(ResultsOf(p), ExpectedOnDevice(layers.here, problem, random));
    }
  }
}

TEST_P(DeviceLinearTest, ZerosAndRowsOfZerosAreAsOnTheCpu) {
  LinearProblem p = HeavyTailed(kSmall);
  std::fill_n(p.x.data.begin(), 2 * kSmall.in, 0.0f);
  std::fill_n(p.g.data.begin(), kSmall.out, -0.0f);
  Layers layers = LayersOf(GetParam());
  ExpectAsOnTheCpu(layers, p);
  std::ranges::fill(p.x.data, 0.0f);
  std::ranges::fill(p.g.data, 0.0f);
  ExpectAsOnTheCpu(layers, p);
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
  Layers layers = LayersOf(GetParam());
  ExpectAsOnTheCpu(layers, p);
}

TEST_P(DeviceLinearTest, AnEmptyDimensionGivesZerosOrNothing) {
  for (const LinearShape& shape : {LinearShape{0, 16, 32}, {16, 0, 32}, {16, 32, 0}, {0, 0, 0}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", shape.tokens, shape.in, shape.out));
    Layers layers = LayersOf(GetParam());
    ExpectAsOnTheCpu(layers, InBf16(UnevenProblem(shape)));
  }
}

// The bytes that are saved are those that are counted: with codes, W is not looked at again.
TEST_P(DeviceLinearTest, KeptBytesAreThoseThatBackwardReads) {
  const LinearProblem p = InBf16(UnevenProblem(kSmall));
  Layers layers = LayersOf(GetParam());
  DeviceProblem there(p);
  ForwardOnDevice(layers.there, there, kRandom);
  LinearSaved here;
  std::vector<float> y(p.g.data.size());
  Linear(layers.here.recipe())
      .Forward(HostMatrix(p.x.data, p.Shape().X()),
               HostMatrix(p.w.data, p.Shape().W()),
               y,
               here,
               kRandom);
  if (there.saved.keeps_codes == here.keeps_codes && GetParam().high_precision != "fp32") {
    EXPECT_EQ(there.saved.Bytes(), here.Bytes());
  }
  if (!there.saved.keeps_codes) return;
  EXPECT_LE(there.saved.Bytes(), 2 * (p.x.data.size() + p.w.data.size() + 2 * kSmall.tokens) + 8);
  there.x.Spoil();
  there.w.Spoil();
  BackwardOnDevice(layers.there, there, kRandom);
  ExpectSameBits(ResultsOf(there), ExpectedOnDevice(layers.here, p, kRandom));
}

// The state of delayed scaling is the same, and goes from one place to the other.
TEST_P(DeviceLinearTest, TheStateOfDelayedScalingMovesBetweenPlaces) {
  if (GetParam().delayed == 0) GTEST_SKIP() << "no delayed scaling";
  Layers layers = LayersOf(GetParam());
  for (uint64_t step = 0; step < 4; ++step) {
    ExpectAsOnTheCpu(layers, HeavyTailed(kSmall), {.seed = 5, .stream = step});
    ASSERT_EQ(layers.there.SaveState(), layers.here.SaveState());
  }
  Layers others = LayersOf(GetParam());
  others.there.RestoreState(layers.here.SaveState());
  others.here.RestoreState(layers.there.SaveState());
  ExpectAsOnTheCpu(others, InBf16(UnevenProblem(kSmall)));
}

// Every legal combination of kind, format, mode and rounding of the gradient, in one small shape.
class EveryLinearOnDevice : public DeviceTestOf<std::string> {};

// Every mode, and each stochastic variant with another number of bits.
std::vector<Rounding> Roundings() {
  std::vector<Rounding> roundings;
  for (const RoundingModeRow& row : kRoundingModes) roundings.push_back({row.mode});
  roundings.back().random_bits = 16;
  roundings.push_back({RoundingMode::kStochastic, StochasticVariant::kB, 8});
  roundings.push_back({RoundingMode::kStochastic, StochasticVariant::kC, 24});
  return roundings;
}

TEST_P(EveryLinearOnDevice, EqualsTheCpu) {
  if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " does not follow the hopper rules";
  const LinearProblem p = InBf16(UnevenProblem({17, 40, 19}));
  size_t tried = 0;
  for (const FormatEntry& entry : FormatTable()) {
    if (!entry.spec.IsSigned() || entry.spec.Bits() > 16) continue;
    for (const Rounding& rounding : Roundings()) {
      for (const bool units : {true, false}) {
        SCOPED_TRACE(
            fmt::format("{} {} {}", entry.name, ToString(rounding.mode), units ? "units" : "fp32"));
        LinearOptions options;
        options.kind = GetParam();
        if (options.kind != "standard") {
          options.format = entry.name;
          options.gradient_rounding = rounding;
        }
        const LinearRecipe made = MakeLinearRecipe(options);
        const LinearRecipe recipe = units ? ForDevice(made) : made;
        Linear there(recipe, place()), here(recipe);
        ExpectSameBits(StepOnDevice(there, p, kRandom), ExpectedOnDevice(here, p, kRandom));
        if (HasFailure()) return;
        ++tried;
      }
    }
  }
  EXPECT_GE(tried, 30 * Roundings().size() * 2);
}

// Layers of the models of the papers: ViT-Huge's and the first one of a LLaMA-7B block, and many
// tokens for a small layer. All elements of y, dx and dw.
class LargeLinearOnDevice : public DeviceTestOf<std::string> {};

TEST_P(LargeLinearOnDevice, EqualsTheCpuAtThePapersShapes) {
  if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " does not follow the hopper rules";
  for (const LinearShape shape : {LinearShape{4096, 1280, 5120},
                                  LinearShape{1024, 4096, 11008},
                                  LinearShape{16384, 768, 768}}) {
    const LinearProblem p = InBf16(UnevenProblem(shape));
    for (const char* const format : {"int8", "e4m3fn", "e3m4"}) {
      if (GetParam() == "standard" && format != std::string_view("int8")) continue;
      SCOPED_TRACE(fmt::format("{} x {} x {} {}", shape.tokens, shape.in, shape.out, format));
      LinearOptions options;
      options.kind = GetParam();
      if (options.kind != "standard") options.format = format;
      const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options));
      Linear there(recipe, place()), here(recipe);
      ExpectSameBits(StepOnDevice(there, p, kRandom), ExpectedOnDevice(here, p, kRandom));
      if (HasFailure()) return;
    }
  }
}

// Weight gradients of more tokens than are summed at once, with a shorter last part.
TEST_P(LargeLinearOnDevice, EqualsTheCpuForManyTokens) {
  if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " does not follow the hopper rules";
  for (const LinearShape shape : {LinearShape{8193, 32, 48}, LinearShape{40001, 40, 33}}) {
    for (const char* const high_precision : {"bf16", "fp16"}) {
      SCOPED_TRACE(fmt::format("{} tokens, {}", shape.tokens, high_precision));
      LinearOptions options;
      options.kind = GetParam();
      options.high_precision = high_precision;
      const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options));
      if (recipe[LinearGemm::kWeightGradient].accumulation.promote == 0) {
        GTEST_SKIP() << "8-bit weight gradients are not summed in parts";
      }
      Linear there(recipe, place()), here(recipe);
      there.CheckShape(shape);
      const LinearProblem p = InBf16(UnevenProblem(shape));
      for (const Element dw : {Element::kFloat32, Element::kBfloat16}) {
        const StoredElements stored{.dw = dw};
        ExpectSameBits(StepOnDevice(there, p, kRandom, {}, stored),
                       ExpectedOnDevice(here, p, kRandom, {}, stored));
      }
    }
  }
}

// Returns the name of a kind as that of a test.
std::string TestNameOf(const testing::TestParamInfo<std::string>& kind) {
  std::string name = kind.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryLinearOnDevice, testing::ValuesIn(KindNames()), TestNameOf);
INSTANTIATE_TEST_SUITE_P(Kinds, LargeLinearOnDevice, testing::ValuesIn(KindNames()), TestNameOf);

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
    Linear there(recipe, place()), here(recipe);
    for (uint64_t step : {6, 7}) {
      const RandomStream random{.seed = 5, .stream = step};
      ExpectSameBits(StepOnDevice(there, p, random), ExpectedOnDevice(here, p, random));
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
                         testing::ValuesIn(Cases()),
                         [](const auto& layer) {
                           const LayerCase& c = layer.param;
                           std::string name = fmt::format("{}_{}_{}_{}_{}_{}_{}",
                                                          layer.index,
                                                          c.kind,
                                                          c.format,
                                                          c.gradient_format,
                                                          c.accumulate,
                                                          c.high_precision,
                                                          c.delayed);
                           std::ranges::replace_if(
                               name, [](char x) { return x == '-' || x == ':'; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace numsim
