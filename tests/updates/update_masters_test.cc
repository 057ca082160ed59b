// Rules with more than the weights: float32 and scaled fp16 masters, remainders, compensations.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/updates/update_rule.h"
#include "tests/reference/inputs.h"
#include "tests/reference/updates/update_exact.h"
#include "tests/reference/updates/update_reference.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Apply;
using update_cases::Arrays;
using update_cases::Case;
using update_cases::DrawHard;
using update_cases::DrawNormal;
using update_cases::ExpectStepsAsDefined;
using update_cases::MakeCase;
using update_cases::SignedFormats;
using update_reference::Join;
using update_reference::Result;

// Applies the step and moves the case on.
UpdateOutcome Advance(Case& c) {
  Result result = Apply(c);
  c.arrays.weights = std::move(result.weights);
  c.state = std::move(result.state);
  return result.outcome;
}

// --- master-fp32 ---

TEST(MasterFp32, IsAsDefinedInEveryFormat) {
  for (const std::string& format : SignedFormats()) {
    // A factor that keeps infinity out of the master for a few steps.
    Arrays arrays = DrawHard(format, 0.3f, 150, 31);
    ExpectStepsAsDefined(MakeCase(format, "master-fp32", arrays, 0x1p-12f), 3);
    Case c = MakeCase(format, "master-fp32", DrawNormal(format, 150, 32), 0.01f);
    c.weight_decay = 0.1f;
    ExpectStepsAsDefined(c, 3);
  }
}

TEST(MasterFp32, RemembersWhatTheWeightDoesNotShow) {
  Case c = MakeCase("e4m3fn", "master-fp32", {{0.75f}, {0.03f}}, 1);
  EXPECT_EQ(Advance(c).moved, 0u);
  EXPECT_EQ(c.arrays.weights[0], 0.75f);
  EXPECT_EQ(c.state.values[0], 0.75f + 0.03f);
  EXPECT_EQ(Advance(c).moved, 1u);
  EXPECT_EQ(c.arrays.weights[0], 0.8125f);
  EXPECT_EQ(c.state.values[0], 0.75f + 0.03f + 0.03f);
}

TEST(MasterFp32, DecaysTheMaster) {
  Case c = MakeCase("e4m3fn", "master-fp32", {{1}, {0}}, 1);
  c.state.values[0] = 1.03f;
  c.weight_decay = 0.5f;
  Advance(c);
  EXPECT_EQ(c.state.values[0], 1.03f + -0.5f * 1.03f);
}

// --- master-fp16-scaled ---

TEST(MasterFp16Scaled, IsAsDefinedInEveryFormat) {
  for (const std::string& format : SignedFormats()) {
    for (const char* rule : {"master-fp16-scaled", "master-fp16-scaled@block:16"}) {
      ExpectStepsAsDefined(MakeCase(format, rule, DrawNormal(format, 150, 33), 0.01f), 3);
      Case c = MakeCase(format, rule, DrawHard(format, 0.3f, 150, 34), 0x1p-12f);
      c.weight_decay = 0.1f;
      ExpectStepsAsDefined(c, 3);
    }
  }
}

TEST(MasterFp16Scaled, ScaleIsTheLeastPowerOfTwoWithoutOverflow) {
  const auto scale_after = [](float weight, float update) {
    Case c = MakeCase("fp32", "master-fp16-scaled", {{weight, 0.25f}, {update, 0}}, 1);
    Advance(c);
    return c.state.scales[0];
  };
  EXPECT_EQ(scale_after(65504, 0), 1.0f);  // zero update: stays
  EXPECT_EQ(scale_after(65472, 32), 1.0f);
  EXPECT_EQ(scale_after(65472, 64), 2.0f);
  EXPECT_EQ(scale_after(131008, 64), 4.0f);
  EXPECT_EQ(scale_after(1, -0.5f), 0x1p-16f);     // 0.5 = 32768 2^-16
  EXPECT_EQ(scale_after(2, -1.0005f), 0x1p-16f);  // 0.9995 < 65504 2^-16 = 0.99951...
  EXPECT_EQ(scale_after(2, -1.0004f), 0x1p-15f);
}

TEST(MasterFp16Scaled, LosesWhatIsFarBelowTheLargest) {
  // s = 2^-15 for the largest, 1: an fp16 subnormal of 2^-24 is 2^-39.
  Case c =
      MakeCase("fp32", "master-fp16-scaled", {{1, 0, 0, 1}, {0, 0x1p-39f, 0x1p-41f, 0x1p-12f}}, 1);
  Advance(c);
  EXPECT_EQ(c.state.scales[0], 0x1p-15f);
  // 2^-12 is a quarter of fp16's gap at 1.
  EXPECT_EQ(c.arrays.weights, (std::vector<float>{1, 0x1p-39f, 0, 1}));
}

TEST(MasterFp16Scaled, OneLargeWeightCoarsensItsGroupAlone) {
  for (const bool blocks : {false, true}) {
    Case c = MakeCase("fp32",
                      blocks ? "master-fp16-scaled@block:2" : "master-fp16-scaled",
                      {{0x1p-30f, 0, 0, 0}, {0, 0, 0x1p20f, 0}},
                      1);
    Advance(c);
    EXPECT_EQ(c.arrays.weights[0], blocks ? 0x1p-30f : 0.0f);
    EXPECT_EQ(c.arrays.weights[2], 0x1p20f);
  }
}

// --- split-master ---

TEST(SplitMaster, IsAsDefined) {
  for (const float rate : {1.0f, 0x1p-10f, 1e-6f}) {
    ExpectStepsAsDefined(MakeCase("bf16", "split-master", DrawHard("bf16", rate, 300, 41), rate),
                         4);
  }
  Case c = MakeCase("bf16", "split-master", DrawNormal("bf16", 300, 42), 0.01f);
  c.weight_decay = 0.1f;
  ExpectStepsAsDefined(c, 4);
}

TEST(SplitMaster, IsFp32BitForBitOverTenThousandSteps) {
  const size_t n = 96;
  std::vector<float> initial = DrawNormal("fp32", n, 43).weights;
  initial[0] = -0.0f;
  initial[1] = 0x1p-130f;
  initial[2] = 0x1p-149f;
  initial[3] = 1.00390625f;  // a tie
  Case split = MakeCase("bf16", "split-master", {std::vector<float>(n), std::vector<float>(n)}, 0);
  Case master = MakeCase("bf16", "master-fp32", split.arrays, 0);
  split.state = update_cases::Start(split.rule, kBf16, {1, n}, initial, split.arrays.weights);
  master.state = update_cases::Start(master.rule, kBf16, {1, n}, initial, master.arrays.weights);
  oracle::TestRandom random(7);
  size_t ties = 0;
  for (int step = 0; step < 10000; ++step) {
    std::vector<float>& update = split.arrays.update;
    for (float& u : update) {
      const auto word = static_cast<int32_t>(random.Next32());
      u = std::ldexp(static_cast<float>(word), -31 - static_cast<int>(random.Below(24)));
    }
    update[1] = std::ldexp(update[1], -125);
    update[2] = std::ldexp(update[2], -135);
    master.arrays.update = update;
    split.learning_rate = master.learning_rate = step % 3 == 0 ? 1e-3f : 0x1p-6f;
    split.weight_decay = master.weight_decay = step % 2 == 0 ? 0.0f : 0.05f;
    Advance(split);
    Advance(master);
    for (size_t i = 0; i < n; ++i) {
      const float w = split.arrays.weights[i];
      const float m = Join(w, split.state.words[i]);
      ASSERT_EQ(std::bit_cast<uint32_t>(m), std::bit_cast<uint32_t>(master.state.values[i]))
          << "step " << step << " element " << i;
      // Half a gap of bf16 away at most: 2^15 in the bits of float32, ties away from zero.
      const uint32_t rounded = (std::bit_cast<uint32_t>(m) + 0x8000u) >> 16 << 16;
      ASSERT_EQ(std::bit_cast<uint32_t>(w), rounded);
      const bool tie = (std::bit_cast<uint32_t>(m) & 0xFFFFu) == 0x8000u;
      ties += tie;
      if (!tie) {
        ASSERT_EQ(w, master.arrays.weights[i]);
      }
    }
  }
  EXPECT_GT(ties, 0u);
}

TEST(SplitMaster, ATieGoesAwayWhereAMasterGoesToEven) {
  Case split = MakeCase("bf16", "split-master", {{1, -1}, {0x1p-8f, -0x1p-8f}}, 1);
  Case master = MakeCase("bf16", "master-fp32", split.arrays, 1);
  Advance(split);
  Advance(master);
  EXPECT_EQ(split.arrays.weights, (std::vector<float>{1.0078125f, -1.0078125f}));
  EXPECT_EQ(split.state.words, (std::vector<uint16_t>{0x8000, 0x8000}));
  EXPECT_EQ(master.arrays.weights, (std::vector<float>{1, -1}));
}

TEST(SplitMaster, IsClampedBelowTheOverflowOfTheWeight) {
  const float largest = 0x1.fep127f;
  Case c = MakeCase("bf16", "split-master", {{largest, -largest}, {0x1p126f, -0x1p127f}}, 1);
  const UpdateOutcome outcome = Advance(c);
  EXPECT_EQ(outcome.status, UpdateStatus::kSaturated);
  EXPECT_EQ(outcome.saturated, 2u);
  EXPECT_EQ(c.arrays.weights, (std::vector<float>{largest, -largest}));
  EXPECT_EQ(Join(c.arrays.weights[0], c.state.words[0]), 0x1.fefffep127f);
  EXPECT_EQ(Join(c.arrays.weights[1], c.state.words[1]), -0x1.fefffep127f);
  // And comes back from there.
  c.arrays.update = {-0x1p126f, 0x1p126f};
  EXPECT_EQ(Advance(c).status, UpdateStatus::kOk);
  EXPECT_LT(c.arrays.weights[0], largest);
  EXPECT_GT(c.arrays.weights[1], -largest);
}

// --- kahan ---

TEST(KahanUpdate, IsAsDefinedInEveryFormat) {
  for (const std::string& format : SignedFormats()) {
    for (const char* rule : {"kahan", "kahan:bf16", "kahan:fp32", "kahan:e5m2"}) {
      Arrays hard = DrawHard(format, 0.3f, 100, 51);
      ExpectStepsAsDefined(MakeCase(format, rule, std::move(hard), 0x1p-10f), 4);
      Case c = MakeCase(format, rule, DrawNormal(format, 100, 52), 0.01f);
      c.weight_decay = 0.1f;
      ExpectStepsAsDefined(c, 4);
    }
  }
}

TEST(KahanUpdate, CarriesTheNotesExampleOver) {
  Case c = MakeCase("e4m3fn", "kahan", {{0.75f}, {0.03125f}}, 1);
  EXPECT_EQ(Advance(c).moved, 0u);
  EXPECT_EQ(c.state.values[0], 0.03125f);
  EXPECT_EQ(Advance(c).moved, 1u);
  EXPECT_EQ(c.arrays.weights[0], 0.8125f);
  EXPECT_EQ(c.state.values[0], 0.0f);
}

TEST(KahanUpdate, RoundsTheExactSumOfWeightAndCorrectedStep) {
  // y = 2^-8 + 2^-60 is a float64, 1 + y is not: as a float64 sum it would be a tie and stay.
  Case c = MakeCase("bf16", "kahan", {{1}, {0x1p-30f}}, 0x1p-30f);
  c.state.values[0] = 0x1p-8f;
  Advance(c);
  EXPECT_EQ(c.arrays.weights[0], 1.0078125f);
  EXPECT_EQ(c.state.values[0], -0x1p-8f);
}

// The steps of a test of many: about 2^-13 for weights of about 1, with no regularity.
std::vector<float> TinySteps(size_t n, oracle::TestRandom& random) {
  std::vector<float> update(n);
  for (float& u : update) u = std::ldexp(static_cast<float>(random.Next32()), -32);
  return update;
}

TEST(KahanUpdate, ManyTinyStepsEndWithinTheErrorOfTheCompensation) {
  struct Kind {
    const char* rule;
    int half_ulp;  // log2 of half an ulp of a compensation just below 2^-7
  };
  const size_t n = 32;
  // Weights stay in [1, 4), with half a gap of at most 2^-7: that bounds c.
  for (const Kind kind : {Kind{"kahan", -16}, Kind{"kahan:fp32", -32}, Kind{"kahan:fp16", -19}}) {
    Case c = MakeCase("bf16", kind.rule, {std::vector<float>(n, 1), {}}, 0x1p-12f);
    c.arrays.update.resize(n);
    std::vector<double> exact(n, 1);
    oracle::TestRandom random(3);
    const int steps = 10000;
    for (int k = 0; k < steps; ++k) {
      c.arrays.update = TinySteps(n, random);
      // Steps of 2^-12 at most are below half a gap of 2^-8: naive rounding would lose each.
      Advance(c);
      for (size_t i = 0; i < n; ++i) exact[i] += 0x1p-12 * static_cast<double>(c.arrays.update[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      const double held = static_cast<double>(c.arrays.weights[i]) + c.state.values[i];
      // Each step rounds c once, as often up as down: far within steps half ulps.
      EXPECT_NEAR(held, exact[i], 6 * std::sqrt(steps) * std::ldexp(1.0, kind.half_ulp))
          << kind.rule;
      EXPECT_LE(std::fabs(c.state.values[i]), 0x1p-7);
    }
    EXPECT_GT(c.arrays.weights[0], 2.0f);
  }
}

TEST(KahanUpdate, DecayInsideTheRuleIsNotLost) {
  // lr decay w = 2^-13 a step, a 32nd of half a gap.
  const int steps = 2048;
  const auto decayed = [&](const char* rule) {
    Case c = MakeCase("bf16", rule, {{1.5f, -1.5f}, {0, 0}}, 0x1p-9f);
    c.weight_decay = 0x1p-4f;
    for (int k = 0; k < steps; ++k) Advance(c);
    EXPECT_EQ(c.arrays.weights[0], -c.arrays.weights[1]) << rule;
    return c.arrays.weights[0];
  };
  const double exact = 1.5 * std::pow(1 - 0x1p-13, steps);
  EXPECT_EQ(decayed("naive"), 1.5f);
  EXPECT_NEAR(decayed("kahan:fp32"), exact, 0x1p-8 + 1e-5);
  EXPECT_NEAR(decayed("kahan"), exact, 0x1p-8 + 0x1p-5);
  EXPECT_NEAR(decayed("master-fp32"), exact, 0x1p-8 + 1e-5);
  EXPECT_NEAR(decayed("split-master"), exact, 0x1p-8 + 1e-5);
}

TEST(KahanUpdate, DecayCountsTheCompensation) {
  Case c = MakeCase("bf16", "kahan:fp32", {{1}, {0}}, 1);
  c.state.values[0] = 0x1p-9f;
  c.weight_decay = 0.25f;
  Advance(c);
  // w + c = 1.001953125 less a quarter of it.
  EXPECT_EQ(c.arrays.weights[0] + c.state.values[0], 0.75f * 1.001953125f);
}

TEST(KahanUpdate, DecayIsRoundedOnceFromTheExactSum) {
  // -decay w = 2^-24 + 2^-53, so that 1 - decay w is a tie of float64 that -decay c decides, and
  // whether float32 makes 1 + 2^-23 of it or 1.
  Case c = MakeCase("bf16", "kahan", {{-0xB1p-7f}, {1}}, 1);
  c.weight_decay = 0x2E4851p-46f;
  c.state.values[0] = -0x1p-40f;
  EXPECT_EQ(0xB1p0 * 0x2E4851p0, 0x20000001p0);
  EXPECT_EQ(Apply(c).outcome.target_norm, 0x1.000002p0);
  c.state.values[0] = 0x1p-40f;
  EXPECT_EQ(Apply(c).outcome.target_norm, 1);
}

TEST(KahanUpdate, ASaturatedCompensationIsTheLargestOfItsFormat) {
  // The weight stays at 448; what is lost, 1000, is beyond the compensation too.
  Case c = MakeCase("e4m3fn", "kahan", {{448}, {1000}}, 1);
  EXPECT_EQ(Advance(c).status, UpdateStatus::kSaturated);
  EXPECT_EQ(c.arrays.weights[0], 448);
  EXPECT_EQ(c.state.values[0], 448);
}

}  // namespace
}  // namespace numsim
