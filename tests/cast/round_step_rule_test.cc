// The rule of one element that the device runs, against RoundStepSerial.
#include "numsim/cast/shared/round_step_rule.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/cast/step_cases.h"
#include "tests/reference/inputs.h"

namespace numsim {
namespace {

const std::vector<std::string> kFormats = {"bf16",
                                           "e4m3fn",
                                           "e5m2",
                                           "fp16",
                                           "e2m1fn",
                                           "binary8p3se",
                                           "fp32",
                                           "tf32",
                                           "int8",
                                           "e4m3fnuz",
                                           "e3m2fn"};

FormatSpec SpecOf(const std::string& format) { return ParseFormat(format).spec; }

std::vector<Rounding> Roundings() {
  std::vector<Rounding> roundings;
  for (const RoundingMode mode : kDeterministicModes) {
    roundings.push_back({mode, StochasticVariant::kA, 0});
  }
  for (const int bits : {1, 7, 16, 32}) {
    roundings.push_back({RoundingMode::kStochastic, StochasticVariant::kA, bits});
    roundings.push_back({RoundingMode::kStochastic, StochasticVariant::kC, bits});
  }
  return roundings;
}

float RoundOne(const StepRule& rule, float base, float direction, float factor, uint32_t random) {
  switch (rule.path) {
    case StepPath::kGrid:
      return RoundStepOne<StepPath::kGrid>(rule, base, direction, factor, random);
    case StepPath::kStochastic:
      return RoundStepOne<StepPath::kStochastic>(rule, base, direction, factor, random);
    case StepPath::kOther:
      return RoundStepOne<StepPath::kOther>(rule, base, direction, factor, random);
    default:
      return RoundStepOne<StepPath::kNearest>(rule, base, direction, factor, random);
  }
}

bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Bases, directions and a factor: any bits, and values of the format with steps near its gaps.
StepCases DrawSteps(const FormatSpec& format, size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  StepCases steps;
  steps.factor = std::ldexp(1.0f + 0x1p-20f * static_cast<float>(random.Below(3)),
                            static_cast<int>(random.Below(40)) - 20);
  const EncodePlan plan = MakeEncodePlan(format, {}, Overflow::kSaturate);
  for (size_t i = 0; i < n; ++i) {
    const float any = std::bit_cast<float>(random.Next32());
    float base = any;
    FakeQuantizeSerial(plan, &any, 1, &base, {});
    if (random.Below(4) == 0) base = any;
    const double halves = static_cast<double>(static_cast<int>(random.Below(64)) - 32);
    const double scale = std::ldexp(1.0, -format.mantissa_bits - 3);
    double step = std::isfinite(base) ? static_cast<double>(base) * halves * scale : 1.0;
    if (random.Below(3) == 0) step += std::ldexp(step, -static_cast<int>(random.Below(40)));
    float direction = static_cast<float>(step / static_cast<double>(steps.factor));
    if (random.Below(5) == 0) direction = std::bit_cast<float>(random.Next32());
    steps.Add(base, direction);
  }
  return steps;
}

void Check(const std::string& format, Overflow overflow, const StepCases& steps) {
  const ArrayRandom random{{3, 4}, 5};
  for (const Rounding& rounding : Roundings()) {
    const EncodePlan plan = MakeEncodePlan(SpecOf(format), rounding, overflow);
    if (!HasStepRule(plan)) continue;
    const StepRule rule = MakeStepRule(plan);
    std::vector<float> expected(steps.Size());
    RoundStepSerial(plan,
                    steps.base.data(),
                    steps.direction.data(),
                    steps.factor,
                    steps.Size(),
                    expected.data(),
                    random);
    for (size_t i = 0; i < steps.Size(); ++i) {
      const float actual =
          RoundOne(rule, steps.base[i], steps.direction[i], steps.factor, Draw(plan, random, i));
      ASSERT_TRUE(SameBits(actual, expected[i]))
          << format << " mode " << static_cast<int>(rounding.mode) << ": " << steps.base[i] << " + "
          << steps.factor << " * " << steps.direction[i] << " gives " << actual << ", not "
          << expected[i];
    }
  }
}

TEST(StepRuleOfOneElement, EqualsRoundStepOfArrays) {
  for (const std::string& format : kFormats) {
    ASSERT_TRUE(HasStepRule(MakeEncodePlan(SpecOf(format))));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Overflow overflow = seed % 4 == 0 ? Overflow::kNonsaturate : Overflow::kSaturate;
      Check(format, overflow, DrawSteps(SpecOf(format), 1000, seed));
    }
  }
}

TEST(StepRuleOfOneElement, TakesSpecialAndWideOperands) {
  for (const std::string& format : kFormats) {
    for (const Overflow overflow : {Overflow::kSaturate, Overflow::kNonsaturate}) {
      for (const StepCases& steps : SpecialSteps()) Check(format, overflow, steps);
      for (const StepCases& steps : WideProductSteps()) Check(format, overflow, steps);
    }
  }
}

TEST(StepRuleOfOneElement, TiesAndAHairBesideThem) {
  for (const char* const format : {"bf16", "e4m3fn", "e2m1fn", "fp16"}) {
    const oracle::Grid grid(oracle::FindFormat(format));
    for (const StepCases& steps : TieSteps(grid, 12, 9)) {
      Check(format, Overflow::kSaturate, steps);
    }
  }
}

TEST(NearestOnGrid, RoundsEveryUpperHalfOfAFloatAsTheArrayDoes) {
  for (const std::string& format : kFormats) {
    const EncodePlan plan = MakeEncodePlan(SpecOf(format), {}, Overflow::kSaturate);
    const std::optional<NearestGrid> grid = MakeNearestGrid(plan);
    if (!grid) continue;
    for (uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      std::vector<float> x, expected(1 << 16);
      for (uint32_t high = 0; high < (1u << 16); ++high) {
        const float value = std::bit_cast<float>(high << 16 | low);
        x.push_back(std::isnan(value) ? 0 : value);
      }
      FakeQuantizeSerial(plan, x.data(), x.size(), expected.data(), {});
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(SameBits(NearestOnGrid(*grid, x[i]), expected[i])) << format << " " << x[i];
      }
    }
  }
}

TEST(HasStepRule, NeedsBitsToSpareAndAFormatThatDecodesInLanes) {
  const auto has = [](const char* format, const Rounding& rounding = {}) {
    return HasStepRule(MakeEncodePlan(SpecOf(format), rounding));
  };
  const Rounding all_bits{RoundingMode::kStochastic, StochasticVariant::kA, 32};
  EXPECT_TRUE(has("bf16", all_bits));
  EXPECT_TRUE(has("fp32", {RoundingMode::kStochastic, StochasticVariant::kA, 27}));
  EXPECT_FALSE(has("fp32", {RoundingMode::kStochastic, StochasticVariant::kA, 28}));
  EXPECT_FALSE(has("e8m0fnu"));
  EXPECT_FALSE(has("bnb-e4m3"));
  EXPECT_FALSE(has("e4m3:bias=147"));  // values that are subnormal in float32
}

}  // namespace
}  // namespace numsim
