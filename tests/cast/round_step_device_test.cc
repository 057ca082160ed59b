// RoundStep on the device against that of the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/cast/shared/round_step.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/cast/step_cases.h"
#include "tests/reference/inputs.h"
#include "tests/reference/oracle.h"
#include "tests/support/device_test.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

const std::vector<std::string> kFormats = {
    "bf16", "e4m3fn", "e5m2", "fp16", "e2m1fn", "binary8p3se", "fp32", "tf32", "int8", "e4m3fnuz"};

std::vector<Rounding> Roundings() {
  std::vector<Rounding> roundings;
  for (const RoundingMode mode : kDeterministicModes) {
    roundings.push_back({mode, StochasticVariant::kA, 0});
  }
  for (const int bits : {3, 8, 16, 27, 32}) {
    for (const auto variant :
         {StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC}) {
      roundings.push_back({RoundingMode::kStochastic, variant, bits});
    }
  }
  return roundings;
}

bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

void ExpectSame(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(SameBits(actual[i], expected[i]))
        << "element " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

StepCases AnySteps(size_t n, uint64_t seed) {
  oracle::TestRandom random(seed);
  StepCases steps{0x1.8p-6f, {}, {}};
  for (size_t i = 0; i < n; ++i) {
    const float base = std::bit_cast<float>(random.Next32());
    const float any = std::bit_cast<float>(random.Next32());
    const float near = base * std::ldexp(1.0f, static_cast<int>(random.Below(20)) - 8);
    steps.Add(base, random.Below(4) == 0 ? any : near);
  }
  return steps;
}

class RoundStepOnDevice : public DeviceTest {
 protected:
  void Check(const EncodePlan& plan, const StepCases& steps, const ArrayRandom& random = {}) {
    if (!HasStepRule(plan)) return;
    std::vector<float> expected(steps.Size());
    RoundStepOnHost(plan, steps.base, steps.direction, steps.factor, expected, random);
    const Buffer<float> base = CopyAt(steps.base, place());
    Buffer<float> moved = CopyAt(steps.direction, place());
    RoundStep(plan, base.View(), moved.View(), steps.factor, moved.View(), random);
    ExpectSame(ToVector(moved.View()), expected);
  }

  void CheckAll(const std::string& format, const StepCases& steps) {
    SCOPED_TRACE(format);
    for (const Rounding& rounding : Roundings()) {
      for (const Overflow overflow : {Overflow::kSaturate, Overflow::kNonsaturate}) {
        Check(MakeEncodePlan(ParseFormat(format).spec, rounding, overflow), steps, {{7, 8}, 21});
        if (HasFailure()) return;
      }
    }
  }
};

TEST_F(RoundStepOnDevice, AnyNumbersInEveryMode) {
  for (const std::string& format : kFormats) CheckAll(format, AnySteps(20000, 5));
}

TEST_F(RoundStepOnDevice, SpecialAndWideOperands) {
  for (const std::string& format : kFormats) {
    for (const StepCases& steps : SpecialSteps()) CheckAll(format, steps);
    for (const StepCases& steps : WideProductSteps()) CheckAll(format, steps);
  }
}

TEST_F(RoundStepOnDevice, TiesAndAHairBesideThem) {
  for (const std::string& format : kFormats) {
    const oracle::Grid grid(oracle::FindFormat(format));
    for (const StepCases& steps : TieSteps(grid, 12, 3)) CheckAll(format, steps);
  }
}

TEST_F(RoundStepOnDevice, EverySizeAndAlignment) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("bf16").spec,
                                         {RoundingMode::kStochastic, StochasticVariant::kA, 16},
                                         Overflow::kSaturate);
  const StepCases steps = AnySteps(5000, 9);
  const Buffer<float> base = CopyAt(steps.base, place());
  const Buffer<float> direction = CopyAt(steps.direction, place());
  for (const size_t n : {0, 1, 2, 3, 4, 5, 255, 1023, 1025, 4990}) {
    for (const size_t shift : {0, 1, 2, 3}) {
      std::vector<float> expected(n);
      RoundStepOnHost(plan,
                      std::span(steps.base).subspan(shift, n),
                      std::span(steps.direction).subspan(0, n),
                      steps.factor,
                      expected,
                      {{1, 2}, shift});
      Buffer<float> out(place(), n + 8);
      device_memory::FillBytes(out.View().data, 0xA5, out.View().Bytes(), stream());
      RoundStep(plan,
                base.View().Columns(shift, n),
                direction.View().Columns(0, n),
                steps.factor,
                out.View().Columns(shift, n),
                {{1, 2}, shift});
      const std::vector<float> all = ToVector(out.View());
      ExpectSame({all.begin() + static_cast<std::ptrdiff_t>(shift),
                  all.begin() + static_cast<std::ptrdiff_t>(shift + n)},
                 expected);
      for (size_t i = 0; i < all.size(); ++i) {
        if (i >= shift && i < shift + n) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(all[i]), 0xA5A5A5A5u) << "beside the result, at " << i;
      }
    }
  }
}

TEST_F(RoundStepOnDevice, ManyMillions) {
  const StepCases steps = AnySteps((size_t{1} << 22) + 5, 4);
  for (const char* const format : {"bf16", "e4m3fn"}) {
    Check(MakeEncodePlan(ParseFormat(format).spec, {}, Overflow::kSaturate), steps);
    Check(MakeEncodePlan(ParseFormat(format).spec,
                         {RoundingMode::kStochastic, StochasticVariant::kA, 32},
                         Overflow::kSaturate),
          steps);
  }
}

TEST_F(RoundStepOnDevice, TheBackendCudaTakesHostArraysThere) {
  const ExecutionState kept;
  const StepCases steps = AnySteps(3000, 1);
  for (const char* const format : {"bf16", "bnb-e4m3"}) {  // the second stays on the CPU
    const EncodePlan plan = MakeEncodePlan(ParseFormat(format).spec, {}, Overflow::kSaturate);
    std::vector<float> expected(steps.Size()), actual(steps.Size());
    RoundStepOnHost(plan, steps.base, steps.direction, steps.factor, expected);
    ForceBackend("cuda");
    RoundStep(plan, steps.base, steps.direction, steps.factor, actual);
    ExpectSame(actual, expected);
    ForceBackend("scalar");
  }
}

}  // namespace
}  // namespace numsim
