// The rule of one element that the device runs, against RoundStepSerial.
#include "numsim/cast/shared/round_step_rule.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
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
    case StepPath::kStochasticGrid:
      return RoundStepOne<StepPath::kStochasticGrid>(rule, base, direction, factor, random);
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

// Numbers at and near all values, ties and quarters of a format, of both signs.
std::vector<double> HardFloat64(const char* format) {
  std::vector<double> all = {0.0, -0.0, 0x1p-140, 0x1p-1022, 0x1p200, 0x1p255, 1.0 - 0x1p-53};
  const oracle::Grid grid(oracle::FindFormat(format));
  const int64_t stride = grid.end() < 3000 ? 1 : 61;
  for (const double x : oracle::Landmarks(grid, stride)) {
    for (const uint64_t bits : oracle::NearF64(x)) {
      const double near = std::bit_cast<double>(bits);
      if (std::isfinite(near)) all.insert(all.end(), {near, -near});
    }
  }
  return all;
}

TEST(Float64OnGrid, RoundsAsTheRuleOfAllFormats) {
  for (const char* const format :
       {"bf16", "e4m3fn", "e5m2", "fp16", "e2m1fn", "int8", "e4m3fnuz"}) {
    const std::vector<double> hard = HardFloat64(format);
    const StepRule nearest = MakeStepRule(MakeEncodePlan(SpecOf(format), {}, Overflow::kSaturate));
    ASSERT_EQ(nearest.path, StepPath::kGrid);
    for (const double x : hard) {
      const float expected = RoundFloat64<RuleMode::kNearestEven>(nearest.plan, x, 0);
      ASSERT_TRUE(SameBits(Float64OnGrid<false>(nearest, x, 0), expected)) << format << " " << x;
    }
    for (const int bits : {1, 7, 8, 16, 32}) {
      const Rounding rounding{RoundingMode::kStochastic, StochasticVariant::kA, bits};
      const StepRule rule =
          MakeStepRule(MakeEncodePlan(SpecOf(format), rounding, Overflow::kSaturate));
      ASSERT_EQ(rule.path, StepPath::kStochasticGrid);
      const uint32_t all = 0xFFFFFFFFu >> (32 - bits);
      for (const uint32_t r : {0u, 1u, all / 2, all / 2 + 1, all / 3, all}) {
        for (const double x : hard) {
          const float expected = RoundFloat64<RuleMode::kStochastic>(rule.plan, x, r);
          ASSERT_TRUE(SameBits(Float64OnGrid<true>(rule, x, r), expected))
              << format << " " << x << " with " << r << " of " << bits << " bits";
        }
      }
    }
  }
}

// The sum that the processor rounds in that direction.
double SumOfProcessor(double a, double b, int direction) {
  volatile double x = a, y = b;
  std::fesetround(direction);
  const volatile double sum = x + y;
  std::fesetround(FE_TONEAREST);
  return sum;
}

// A device takes the odd one of the sums rounded down and up.
TEST(OddSum, AndSumTowardZeroAreTheProcessorsDirectedSums) {
  oracle::TestRandom random(8);
  for (int i = 0; i < 200000; ++i) {
    const auto draw = [&] {
      const double x = std::ldexp(static_cast<double>(random.Next() >> random.Below(60)),
                                  static_cast<int>(random.Below(80)) - 90);
      return random.Below(2) == 0 ? x : -x;
    };
    const double a = draw(), b = random.Below(20) == 0 ? -a : draw();
    const double down = SumOfProcessor(a, b, FE_DOWNWARD), up = SumOfProcessor(a, b, FE_UPWARD);
    const double odd = (std::bit_cast<uint64_t>(down) & 1) != 0 ? down : up;
    ASSERT_EQ(std::bit_cast<uint64_t>(OddSum(a, b)), std::bit_cast<uint64_t>(odd));
    ASSERT_EQ(std::bit_cast<uint64_t>(SumTowardZero(a, b)),
              std::bit_cast<uint64_t>(SumOfProcessor(a, b, FE_TOWARDZERO)));
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
