// The weights and states from which update rules start.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/updates/update_rule.h"
#include "tests/reference/updates/update_exact.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::DrawNormal;
using update_cases::ExpectSameBits;
using update_reference::Exact;
using update_reference::State;
using update_reference::StorageOf;

State Start(const char* rule,
            const char* format,
            MatrixShape shape,
            const std::vector<float>& initial,
            std::vector<float>& weights) {
  weights.assign(initial.size(), 99);
  return update_cases::Start(
      ParseUpdateRule(rule), ParseFormat(format).spec, shape, initial, weights);
}

std::vector<float> Rounded(const std::vector<float>& x, const char* format) {
  std::vector<float> rounded;
  for (const float v : x) rounded.push_back(StorageOf(format).Nearest(Exact(v)));
  return rounded;
}

// Ordinary numbers, a tie of bf16 and e4m3fn, zeros of both signs, one beyond e4m3fn's range.
std::vector<float> Initial() {
  std::vector<float> initial = DrawNormal("fp32", 200, 4).weights;
  for (const float x : {1.00390625f, 1.0625f, -1.00390625f, 0.0f, -0.0f, 1000.0f, -1e-9f}) {
    initial.push_back(x);
  }
  return initial;
}

TEST(StartUpdates, RoundsTheWeightsAndKeepsNothingWithoutState) {
  for (const char* rule : {"naive", "stochastic", "note-as-printed", "norm-matched"}) {
    for (const char* format : {"e4m3fn", "bf16", "fp32", "int8"}) {
      std::vector<float> weights;
      const State state = Start(rule, format, {9, 23}, Initial(), weights);
      ExpectSameBits(weights, Rounded(Initial(), format));
      EXPECT_EQ(state, State{});
    }
  }
}

TEST(StartUpdates, MasterFp32HoldsTheInitialValues) {
  std::vector<float> weights;
  const State state = Start("master-fp32", "e4m3fn", {9, 23}, Initial(), weights);
  ExpectSameBits(weights, Rounded(Initial(), "e4m3fn"));
  ExpectSameBits(state.values, Initial());
  EXPECT_TRUE(state.words.empty());
  EXPECT_TRUE(state.scales.empty());
}

TEST(StartUpdates, CompensationIsZeroInTheBeginning) {
  for (const char* rule : {"kahan", "kahan:fp32"}) {
    std::vector<float> weights;
    const State state = Start(rule, "bf16", {9, 23}, Initial(), weights);
    ExpectSameBits(weights, Rounded(Initial(), "bf16"));
    ExpectSameBits(state.values, std::vector<float>(weights.size(), 0.0f));
  }
}

TEST(StartUpdates, SplitMasterRoundsTiesAwayAndKeepsEveryBit) {
  std::vector<float> initial = Initial();
  for (const float x : {0x1p-149f, -0x1p-149f, 0x1p-134f, -0x1.8p-133f, 0x1.fefffep127f}) {
    initial.push_back(x);
  }
  std::vector<float> weights;
  const State state = Start("split-master", "bf16", {1, initial.size()}, initial, weights);
  ASSERT_EQ(state.words.size(), initial.size());
  std::vector<float> joined;
  for (size_t i = 0; i < initial.size(); ++i) {
    EXPECT_EQ(weights[i], StorageOf("bf16").NearestAway(Exact(initial[i]))) << initial[i];
    joined.push_back(update_reference::Join(weights[i], state.words[i]));
  }
  ExpectSameBits(joined, initial);
  // 1 + 2^-8 is a tie of 1 and 1 + 2^-7: away from zero here, to the even 1 under Q.
  std::vector<float> tie;
  EXPECT_EQ(Start("split-master", "bf16", {1, 1}, {1.00390625f}, tie).words[0], 0x8000);
  EXPECT_EQ(tie[0], 1.0078125f);
}

TEST(StartUpdates, ScaledMasterHasTheLeastPowerOfTwoOfEachGroup) {
  const std::vector<float> initial = {1, -3, 0.1f, 0, 0, -0.0f, 65504, 1, 2, 65505, 1, -1e-9f};
  std::vector<float> weights;
  const State state = Start("master-fp16-scaled@row", "bf16", {4, 3}, initial, weights);
  // 3 / 2^-14 = 49152; zeros have scale 1.
  ExpectSameBits(state.scales, {0x1p-14f, 1, 1, 2});
  const auto& fp16 = StorageOf("fp16");
  ASSERT_EQ(state.words.size(), initial.size());
  for (size_t i = 0; i < initial.size(); ++i) {
    const double quotient = static_cast<double>(initial[i]) / state.scales[i / 3];
    EXPECT_EQ(state.words[i], fp16.NearestCode(Exact(quotient), oracle::Policy::kSaturate));
    const float master = state.scales[i / 3] * fp16.ValueOf(state.words[i]);
    EXPECT_EQ(weights[i], StorageOf("bf16").Nearest(Exact(master)));
  }
}

TEST(StartUpdates, ScaledMasterRoundsItsWeightsFromTheMaster) {
  // Above the midpoint of bf16's 1 and 1.0078125, but fp16 of it is the midpoint: to the even 1.
  std::vector<float> weights;
  const std::vector<float> initial = {1.00390625f + 0x1p-20f, 60000};
  const State state = Start("master-fp16-scaled", "bf16", {1, 2}, initial, weights);
  EXPECT_EQ(state.scales[0], 1);
  EXPECT_EQ(weights[0], 1);
}

TEST(StartUpdates, WhatIsNotFiniteSaturatesOrIsRefused) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const UpdateKind kind : UpdateKinds()) {
    const std::string rule(ToString(kind));
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> weights;
      const State state = Start(rule.c_str(), "bf16", {1, 2}, {1, bad}, weights);
      const bool refused = std::isnan(bad);
      if (!std::isnan(bad)) {
        EXPECT_EQ(weights[1], std::copysign(0x1.fep127f, bad)) << rule;
      }
      const std::vector<float> update = {0.5f, 0.5f};
      const MatrixSpan<float> matrix = HostMatrix(weights, {1, 2});
      const WeightUpdate step = {kBf16, matrix, HostMatrix(update, {1, 2}), 1, 0};
      UpdateState kept = update_cases::ToUpdateState(state, {1, 2});
      const UpdateStatus status = ApplyUpdate(ParseUpdateRule(rule), step, {}, kept, matrix).status;
      EXPECT_EQ(status == UpdateStatus::kNonfinite, refused) << rule << " " << bad;
    }
  }
}

TEST(StartUpdates, MayWorkInPlace) {
  for (const UpdateKind kind : UpdateKinds()) {
    const UpdateRule rule = ParseUpdateRule(ToString(kind));
    std::vector<float> weights(Initial().size());
    const State state = update_cases::Start(rule, kBf16, {9, 23}, Initial(), weights);
    std::vector<float> in_place = Initial();
    const State same = update_cases::Start(rule, kBf16, {9, 23}, in_place, in_place);
    ExpectSameBits(in_place, weights);
    update_cases::ExpectSameState(same, state);
  }
}

}  // namespace
}  // namespace numsim
