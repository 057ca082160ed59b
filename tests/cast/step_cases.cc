#include "tests/cast/step_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "numsim/cast/shared/round_step.h"
#include "numsim/formats/format_table.h"
#include "tests/reference/arithmetic.h"
#include "tests/reference/exact_step.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"
#include "tests/support/special_values.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr ArrayRandom kRandom = {{.seed = 5, .stream = uint64_t{7} << 32}, 333};

// Powers of two, full significands, and factors so small or large that products leave float32.
constexpr std::array kFactors = {
    1.0f, -0.75f, 0x1.000002p0f, -0x1.fffffep-60f, 1e-12f, 0x1.234566p40f, 0x1p-149f, -0x1.8p-100f};

float AnyFloat(oracle::TestRandom& random) { return std::bit_cast<float>(random.Next32()); }

// A full significand with that exponent, either sign.
float Around(int exponent, oracle::TestRandom& random) {
  const float significand = 1 + static_cast<float>(random.Next32() >> 9) * 0x1p-23f;
  return std::ldexp(random.Below(2) == 0 ? significand : -significand, exponent);
}

float Neighbour(float x, int steps) {
  for (; steps > 0; --steps) x = std::nextafter(x, kInfinity);
  for (; steps < 0; ++steps) x = std::nextafter(x, -kInfinity);
  return x;
}

// Steps to `sum`, near it and a hair beside it; `low` is the value of the format below.
void AddStepsTo(double sum, double low, StepCases& steps, oracle::TestRandom& random) {
  const double factor = static_cast<double>(steps.factor);
  const auto quotient = [factor](double x) { return static_cast<float>(x / factor); };
  const auto base = static_cast<float>(sum);
  steps.Add(base, 0.0f);
  for (int bits : {23, 30, 52, 60, 100}) {
    const float hair = quotient(std::ldexp(sum, -bits));
    steps.Add(base, hair);
    steps.Add(base, -hair);
  }
  // From the value below, by what is missing and by a little less or more.
  for (int k : {-1, 0, 1}) {
    steps.Add(static_cast<float>(low), Neighbour(quotient(sum - low), k));
  }
  // The product is nearly all; the base puts right what it misses, to its own last bit.
  const float whole = quotient(sum);
  const double rest = sum - factor * static_cast<double>(whole);
  for (int k : {-1, 0, 1}) steps.Add(Neighbour(static_cast<float>(rest), k), whole);
  // Large addends that cancel.
  const float large = Around(std::ilogb(sum) + static_cast<int>(random.Below(40)), random);
  const float most = quotient(sum - static_cast<double>(large));
  steps.Add(large, most);
  steps.Add(static_cast<float>(sum - factor * static_cast<double>(most)), most);
}

struct Wrong {
  size_t count = 0;

  void Report(const std::string& text) {
    if (++count <= 3) ADD_FAILURE() << text;
  }
};

bool SameFloat(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Steps under one setting, and what they come to.
struct Expected {
  const StepCases* steps;
  const oracle::Setting* setting;
  EncodePlan plan;
  std::vector<float> want;
};

Expected Expect(const oracle::Grid& grid,
                const StepCases& steps,
                const std::vector<oracle::Placement>& exact,
                const oracle::Setting& setting) {
  const FormatSpec format = ParseFormat(grid.format().name).spec;
  const EncodePlan plan = MakeEncodePlan(format, RoundingOf(setting), ToLibrary(setting.policy));
  Expected expected{&steps, &setting, plan, std::vector<float>(steps.Size())};
  for (size_t i = 0; i < steps.Size(); ++i) {
    const uint32_t word =
        setting.mode == oracle::Mode::kStochastic
            ? RandomBits(kRandom.stream, kRandom.first_index + i, setting.random_bits)
            : 0;
    const auto outcome = exact[i].Round(setting, oracle::Tininess::kAfterRounding, word);
    expected.want[i] = ValueOf(grid, outcome.code);
  }
  return expected;
}

void Check(const oracle::Grid& grid, const Expected& expected, Wrong& wrong) {
  const StepCases& steps = *expected.steps;
  const size_t n = steps.Size();
  std::vector<float> got(n, 77.0f);
  RoundStepSerial(expected.plan,
                  steps.base.data(),
                  steps.direction.data(),
                  steps.factor,
                  n,
                  got.data(),
                  kRandom);
  for (size_t i = 0; i < n; ++i) {
    if (SameFloat(got[i], expected.want[i])) continue;
    wrong.Report(fmt::format("{} {} {}: element {} of {}: {:a} + {:a} * {:a} gave {:a}, not {:a}",
                             BackendName(),
                             grid.format().name,
                             oracle::Describe(*expected.setting),
                             i,
                             n,
                             steps.base[i],
                             steps.factor,
                             steps.direction[i],
                             got[i],
                             expected.want[i]));
  }
}

}  // namespace

std::vector<StepCases> SpecialSteps() {
  constexpr std::array kSpecial = {0.0f, 1.0f, kTiny, kMax, kInfinity, kNaN};
  std::vector<StepCases> steps;
  for (float factor : kSpecial) {
    for (float sign : {1.0f, -1.0f}) {
      StepCases group{factor * sign, {}, {}};
      for (float base : kSpecial) {
        for (float direction : kSpecial) {
          group.Add(base, direction);
          group.Add(-base, direction);
          group.Add(base, -direction);
          group.Add(-base, -direction);
        }
      }
      steps.push_back(group);
    }
  }
  return steps;
}

std::vector<StepCases> RandomSteps(const oracle::Grid& grid, size_t count, uint64_t seed) {
  oracle::TestRandom random(seed);
  std::vector<StepCases> steps;
  for (float factor : kFactors) {
    StepCases group{factor, {}, {}};
    for (size_t i = 0; i < count / 2; ++i) {
      group.Add(AnyFloat(random), AnyFloat(random));
      const auto base =
          static_cast<float>(grid.Value(static_cast<int64_t>(random.Below(grid.end()))));
      const int exponent = base == 0 ? -20 : std::ilogb(base);
      const int spread = static_cast<int>(random.Below(60)) - 40;
      const int to_base = exponent - std::ilogb(factor) + spread;
      group.Add(random.Below(2) == 0 ? base : -base, Around(to_base, random));
    }
    steps.push_back(group);
  }
  return steps;
}

std::vector<StepCases> TieSteps(const oracle::Grid& grid, size_t positions, uint64_t seed) {
  oracle::TestRandom random(seed);
  const int64_t smallest_normal = int64_t{1} << grid.format().mantissa_bits;
  std::vector<int64_t> places = {0, 1, smallest_normal - 1, smallest_normal, grid.end() - 1};
  while (places.size() < positions) {
    places.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(grid.end()))));
  }
  std::vector<StepCases> steps;
  for (float factor : kFactors) steps.push_back({factor, {}, {}});
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t place = std::clamp<int64_t>(places[i], 0, grid.end() - 1);
    const double low = grid.Value(place);
    const double tie = low + (grid.Value(place + 1) - low) / 2;
    for (double sign : {1.0, -1.0}) {
      for (size_t f = 0; f < 3; ++f) {
        StepCases& group = steps[(i + 3 * f) % steps.size()];
        AddStepsTo(sign * tie, sign * low, group, random);
        if (low > 0) AddStepsTo(sign * low, sign * low, group, random);
      }
    }
  }
  return steps;
}

std::vector<StepCases> WideProductSteps() {
  StepCases group{0x1.8p64f, {}, {}};
  for (float sign : {1.0f, -1.0f}) {
    // 2^128 or a little more or less, most of which the base takes off.
    for (float direction : {0x1.555556p63f, 0x1.555554p63f, 0x1p64f, 0x1.4p63f}) {
      for (float base : {0x1p127f, 0x1.8p127f, kMax, 0x1.fp127f, 1.0f}) {
        group.Add(-sign * base, sign * direction);
        group.Add(sign * base, sign * direction);
      }
    }
  }
  StepCases tiny{0x1.8p-149f, {}, {}};  // products down to 2^-298
  for (float sign : {1.0f, -1.0f}) {
    for (float direction : {kTiny, 0x1p-126f, 0x1.8p-1f, 1.0f, 0x1.8p0f, 0x1p23f}) {
      for (float base : {0.0f, kTiny, 0x1p-148f, 0x1p-133f, 0x1.8p-133f, 0x1p-10f, 448.0f}) {
        tiny.Add(base, sign * direction);
        tiny.Add(-base, sign * direction);
      }
    }
  }
  return {group, tiny};
}

std::vector<oracle::Setting> StepSettings() {
  std::vector<oracle::Setting> settings = oracle::DeterministicSettings();
  constexpr std::array kPolicies = {
      oracle::Policy::kNonsaturate, oracle::Policy::kSaturate, oracle::Policy::kPropagate};
  size_t i = 0;
  for (oracle::Variant variant : {oracle::Variant::kA, oracle::Variant::kB, oracle::Variant::kC}) {
    for (int bits : {1, 7, 16, 32}) {
      settings.push_back({oracle::Mode::kStochastic, kPolicies[i++ % 3], variant, bits});
    }
  }
  for (int bits : {1, 8, 16, 29, 32}) {  // the steps of weights, which have a shortcut
    settings.push_back(
        {oracle::Mode::kStochastic, oracle::Policy::kSaturate, oracle::Variant::kA, bits});
  }
  return settings;
}

void CheckSteps(const oracle::Grid& grid,
                const std::vector<StepCases>& steps,
                const std::vector<oracle::Setting>& settings) {
  std::vector<Expected> all;
  for (const StepCases& group : steps) {
    std::vector<oracle::Placement> exact;
    for (size_t i = 0; i < group.Size(); ++i) {
      const oracle::ExactNumber sum = ExactStep(group.base[i], group.factor, group.direction[i]);
      exact.emplace_back(grid, sum, oracle::Modes::kAll);
    }
    for (const oracle::Setting& setting : settings) {
      all.push_back(Expect(grid, group, exact, setting));
    }
  }
  Wrong wrong;
  WithEachBackend([&] {
    for (const Expected& expected : all) Check(grid, expected, wrong);
  });
  EXPECT_EQ(wrong.count, 0u) << grid.format().name << ": wrong in all";
}

}  // namespace numsim
