// Steps rounded once against exact arithmetic of big integers, on every backend.
#include "numsim/cast/shared/round_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "numsim/formats/format_table.h"
#include "tests/cast/step_cases.h"
#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

EncodePlan PlanOf(const char* format, const Rounding& rounding = {}) {
  return MakeEncodePlan(ParseFormat(format).spec, rounding, Overflow::kSaturate);
}

constexpr Rounding kStochastic16 = {RoundingMode::kStochastic, StochasticVariant::kA, 16};

StepCases SomeSteps(size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  StepCases steps{0x1.3p-4f, {}, {}};
  for (size_t i = 0; i < n; ++i) {
    const float x = static_cast<float>(random.Next32()) * 0x1p-31f - 1;
    steps.Add(x, static_cast<float>(random.Next32()) * 0x1p-29f - 4);
  }
  return steps;
}

std::vector<float> RoundSerially(const EncodePlan& plan,
                                 const StepCases& steps,
                                 const ArrayRandom& random = {}) {
  std::vector<float> out(steps.Size());
  RoundStepSerial(plan,
                  steps.base.data(),
                  steps.direction.data(),
                  steps.factor,
                  steps.Size(),
                  out.data(),
                  random);
  return out;
}

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class RoundStepOfFormat : public testing::TestWithParam<oracle::Format> {
 protected:
  const oracle::Grid grid_{GetParam()};
};

TEST_P(RoundStepOfFormat, RandomStepsAreRoundedOnce) {
  CheckSteps(grid_, RandomSteps(grid_, 40, 1), StepSettings());
}

TEST_P(RoundStepOfFormat, TiesAndAHairBesideThem) {
  CheckSteps(grid_, TieSteps(grid_, 12, 2), StepSettings());
}

TEST_P(RoundStepOfFormat, ProductsBeyondFloat32) {
  CheckSteps(grid_, WideProductSteps(), StepSettings());
}

TEST_P(RoundStepOfFormat, SpecialOperands) {
  CheckSteps(grid_, SpecialSteps(), oracle::DeterministicSettings());
  for (const auto policy : {oracle::Policy::kNonsaturate, oracle::Policy::kSaturate}) {
    CheckSteps(
        grid_, SpecialSteps(), {{oracle::Mode::kStochastic, policy, oracle::Variant::kA, 16}});
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats,
                         RoundStepOfFormat,
                         testing::ValuesIn(SampledCases(oracle::AllFormats())),
                         oracle::ParamName);

TEST(RoundStep, ExampleOfTheNote) {
  for (const char* format : {"e4m3fn", "e4m3", "qpytorch-e4m3"}) {
    StepCases steps{1.0f, {}, {}};
    for (float u : {0.03f, 0.03125f, 0x1.000002p-5f, 0.04f}) steps.Add(0.75f, u);
    WithEachBackend([&] {
      EXPECT_EQ(RoundSerially(PlanOf(format), steps),
                (std::vector<float>{0.75f, 0.75f, 0.8125f, 0.8125f}))
          << format;
    });
  }
}

TEST(RoundStep, EveryLengthWritesItsElementsAlone) {
  for (const char* format : {"e4m3fn", "bf16", "fp32", "int8", "bnb-e4m3"}) {
    for (const Rounding& rounding : {Rounding{}, kStochastic16}) {
      const EncodePlan plan = PlanOf(format, rounding);
      const ArrayRandom random = {{.seed = 3, .stream = 4}, 17};
      const StepCases steps = SomeSteps(101, 3);
      WithEachBackend([&] {
        const std::vector<float> whole = RoundSerially(plan, steps, random);
        for (size_t n = 0; n <= 100; ++n) {
          std::vector<float> out(102, -77.0f), want(102, -77.0f);
          std::copy_n(whole.begin(), n, want.begin() + 1);
          RoundStepSerial(plan,
                          steps.base.data(),
                          steps.direction.data(),
                          steps.factor,
                          n,
                          out.data() + 1,
                          random);
          EXPECT_TRUE(Same(out, want)) << format << " length " << n;
        }
      });
    }
  }
}

TEST(RoundStep, PiecesDrawTheWordsOfTheirPlaces) {
  const StepCases steps = SomeSteps(700, 4);
  for (int bits : {1, 7, 8, 9, 16, 17, 32}) {
    const EncodePlan plan =
        PlanOf("e4m3fn", {RoundingMode::kStochastic, StochasticVariant::kA, bits});
    for (uint64_t first : {uint64_t{0}, uint64_t{333}, (uint64_t{1} << 32) - 100}) {
      const RandomStream stream = {.seed = 8, .stream = 9};
      const std::vector<float> whole = RoundSerially(plan, steps, {stream, first});
      WithEachBackend([&] {
        for (size_t cut : {1u, 63u, 64u, 130u, 699u}) {
          std::vector<float> out(steps.Size());
          const float *base = steps.base.data(), *direction = steps.direction.data();
          RoundStepSerial(plan, base, direction, steps.factor, cut, out.data(), {stream, first});
          RoundStepSerial(plan,
                          base + cut,
                          direction + cut,
                          steps.factor,
                          steps.Size() - cut,
                          out.data() + cut,
                          {stream, first + cut});
          EXPECT_TRUE(Same(out, whole)) << bits << " bits, cut at " << cut;
        }
      });
    }
  }
}

// Returns a and b < 2^24 with a b == x, or zeros if there are none.
std::pair<uint32_t, uint32_t> TwoFactors(uint32_t x) {
  for (uint32_t a = 1; a < (1u << 16); ++a) {
    if (x % a == 0 && x / a < (1u << 24)) return {a, x / a};
  }
  return {0, 0};
}

// Makes the first step of the vector 1 + x 2^exponent. Returns false if x has no such factors.
bool SetFirst(StepCases& steps, uint32_t x, int exponent) {
  const auto [a, b] = TwoFactors(x);
  steps.factor = std::ldexp(static_cast<float>(a), -27);
  steps.base[0] = 1;
  steps.direction[0] = std::ldexp(static_cast<float>(b), exponent + 27);
  return a != 0;
}

// 1 + (2^N - R) 2^-N gaps of fp32 is the least sum that the random bits R take up. 2^-54 less is
// not taken up, but float64 rounds it to that sum.
TEST(RoundStep, AHairBelowTheRandomBitsStays) {
  for (const int bits : {16, 29}) {
    const EncodePlan plan =
        PlanOf("fp32", {RoundingMode::kStochastic, StochasticVariant::kA, bits});
    int tried = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      const ArrayRandom random = {{.seed = 14, .stream = 15}, i};
      const uint32_t least = (1u << bits) - RandomBits(random.stream, i, bits);
      // The others fill the vector with sums that are not close to anything.
      StepCases below = SomeSteps(64, i), exact = below;
      if (!SetFirst(below, (least << (31 - bits)) - 1, -54)) continue;
      if (!SetFirst(exact, least, -23 - bits)) continue;
      WithEachBackend([&] {
        EXPECT_EQ(RoundSerially(plan, below, random)[0], 1.0f) << "element " << i;
        EXPECT_EQ(RoundSerially(plan, exact, random)[0], 0x1.000002p0f) << "element " << i;
      });
      ++tried;
    }
    EXPECT_GT(tried, 20) << bits << " bits";
  }
}

// Vector code leaves the elements around a NaN to other code.
TEST(RoundStep, NanLeavesItsNeighboursAlone) {
  const ArrayRandom random = {{.seed = 12, .stream = 13}, 77};
  for (const char* format : {"e4m3fn", "bf16"}) {
    for (const Rounding& rounding : {Rounding{}, kStochastic16}) {
      const EncodePlan plan = PlanOf(format, rounding);
      for (const size_t at : {0u, 9u, 1023u, 1024u, 1050u, 2998u}) {
        StepCases steps = SomeSteps(3001, 7);
        steps.base[at] = std::nanf("");
        steps.direction[at + 1] = -std::nanf("");
        const ExecutionState state;
        ForceBackend("scalar");
        const std::vector<float> want = RoundSerially(plan, steps, random);
        WithEachBackend([&] {
          EXPECT_TRUE(Same(RoundSerially(plan, steps, random), want)) << format << " " << at;
        });
      }
    }
  }
}

TEST(RoundStep, InPlaceOverBaseOrDirection) {
  for (const char* format : {"e4m3fn", "fp32", "bnb-e5m2"}) {
    for (const Rounding& rounding : {Rounding{}, kStochastic16}) {
      const EncodePlan plan = PlanOf(format, rounding);
      for (size_t n : {1u, 15u, 100u, 5000u}) {
        const StepCases steps = SomeSteps(n, 5);
        WithEachBackend([&] {
          const std::vector<float> want = RoundSerially(plan, steps);
          StepCases over_base = steps, over_direction = steps;
          RoundStep(plan, over_base.base, over_base.direction, steps.factor, over_base.base);
          RoundStep(plan,
                    over_direction.base,
                    over_direction.direction,
                    steps.factor,
                    over_direction.direction);
          EXPECT_TRUE(Same(over_base.base, want)) << format << " length " << n;
          EXPECT_TRUE(Same(over_direction.direction, want)) << format << " length " << n;
        });
      }
    }
  }
}

TEST(RoundStep, ThreadsDoNotChangeBits) {
  const StepCases steps = SomeSteps(200001, 6);
  const ArrayRandom random = {{.seed = 10, .stream = 11}, 12345};
  for (const char* format : {"e5m2", "bf16"}) {
    for (const Rounding& rounding : {Rounding{}, kStochastic16}) {
      const EncodePlan plan = PlanOf(format, rounding);
      const std::vector<float> want = RoundSerially(plan, steps, random);
      WithEachBackend([&] {
        for (int threads : {1, 2, 3}) {
          SetThreadCount(threads);
          std::vector<float> out(steps.Size());
          RoundStep(plan, steps.base, steps.direction, steps.factor, out, random);
          EXPECT_TRUE(Same(out, want)) << format << ", " << threads << " threads";
        }
      });
    }
  }
}

TEST(RoundStep, NanHasTheSameBitsOnEveryBackend) {
  const ExecutionState state;
  for (const StepCases& steps : SpecialSteps()) {
    for (const char* format : {"e4m3fn", "fp32", "bf16", "e5m2", "fp16"}) {
      const EncodePlan plan = MakeEncodePlan(ParseFormat(format).spec);
      ForceBackend("scalar");
      const std::vector<float> want = RoundSerially(plan, steps);
      WithEachBackend([&] { EXPECT_TRUE(Same(RoundSerially(plan, steps), want)) << format; });
    }
  }
}

std::vector<float> RoundFloatSteps(const EncodePlan& plan, const StepCases& steps, size_t n) {
  std::vector<float> out(steps.Size(), -77.0f);
  const float *base = steps.base.data(), *direction = steps.direction.data();
  RoundFloatStepSerial(plan, base, direction, steps.factor, n, out.data());
  return out;
}

TEST(RoundFloatStep, RoundsTheSumInFloat32) {
  const ExecutionState state;
  for (const oracle::Format& format : oracle::AllFormats()) {
    const EncodePlan plan = PlanOf(format.name.c_str());
    std::vector<StepCases> all = SpecialSteps();
    all.push_back(SomeSteps(101, 8));
    for (const StepCases& steps : RandomSteps(oracle::Grid(format), 40, 9)) all.push_back(steps);
    for (const StepCases& steps : all) {
      std::vector<float> want(steps.Size());
      for (size_t i = 0; i < want.size(); ++i) {
        want[i] = steps.base[i] + steps.factor * steps.direction[i];
      }
      ForceBackend("scalar");
      FakeQuantize(plan, want, want);
      const std::vector<float> scalar = RoundFloatSteps(plan, steps, steps.Size());
      // Of two NaN operands a sum has either's bits: a compiler may exchange them in `want`.
      for (size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i]) && std::isnan(scalar[i])) want[i] = scalar[i];
      }
      WithEachBackend([&] {
        EXPECT_TRUE(Same(RoundFloatSteps(plan, steps, steps.Size()), want)) << format.name;
      });
    }
  }
}

TEST(RoundFloatStep, EveryLengthWritesItsElementsAlone) {
  StepCases steps = SomeSteps(101, 10);
  for (const size_t nan : {101u, 0u, 20u, 97u}) {  // or none
    if (nan < steps.Size()) steps.base[nan] = std::nanf("");
    for (const char* format : {"bf16", "int8", "fp32"}) {
      const EncodePlan plan = PlanOf(format);
      WithEachBackend([&] {
        const std::vector<float> whole = RoundFloatSteps(plan, steps, steps.Size());
        for (size_t n = 0; n <= 100; ++n) {
          std::vector<float> want(101, -77.0f);
          std::copy_n(whole.begin(), n, want.begin());
          EXPECT_TRUE(Same(RoundFloatSteps(plan, steps, n), want)) << format << " length " << n;
        }
      });
    }
  }
}

}  // namespace
}  // namespace numsim
