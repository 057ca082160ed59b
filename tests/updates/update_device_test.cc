// Update rules on the device against those of the CPU: every bit but `passes`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "tests/reference/inputs.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"
#include "tests/updates/matched_large.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using update_cases::Arrays;
using update_cases::Case;
using update_reference::Result;

const std::vector<std::string> kRules = {"naive",
                                         "stochastic",
                                         "stochastic:16",
                                         "stochastic:7",
                                         "master-fp32",
                                         "kahan",
                                         "kahan:bf16",
                                         "split-master",
                                         "norm-matched",
                                         "norm-matched:none",
                                         "projection-matched",
                                         "projection-matched:none"};
const std::vector<std::string> kFormats = {
    "bf16", "e4m3fn", "e5m2", "fp16", "e2m1fn", "binary8p3se", "int8", "fp32", "e4m3fnuz"};

// The backend of the CPU that comparisons are with, and the device under the name cuda.
class UpdateOnDevice : public DeviceTest {
 protected:
  Result OnTheDevice(const Case& c, bool in_place = false) {
    WeightUpdate step = update_cases::StepOf(c);
    Buffer<float> weights = CopyAt(step.weights, place());
    const Buffer<float> update = CopyAt(step.update, place());
    Buffer<float> apart(place());
    const MatrixSpan<float> out = in_place ? weights.View() : apart.Resize(c.rows, c.cols);
    UpdateState state = update_cases::ToUpdateState(c.state, c.Shape(), place());
    step.weights = weights.View();
    step.update = update.View();
    Result result;
    result.outcome = ApplyUpdate(c.rule, step, c.random, state, out, &result.groups);
    result.weights = ToVector(out);
    result.state = update_cases::FromUpdateState(state);
    return result;
  }

  void Compare(const Case& c, bool in_place = false) {
    SCOPED_TRACE(c.format + " " + ToString(c.rule) + " n " +
                 std::to_string(c.arrays.weights.size()) + " lr " +
                 std::to_string(c.learning_rate));
    const Result expected = update_cases::Apply(c);
    Result actual = OnTheDevice(c, in_place);
    EXPECT_EQ(actual.outcome.passes > 0, expected.outcome.passes > 0);
    actual.outcome.passes = expected.outcome.passes;
    update_cases::ExpectIdenticalOutcome(actual.outcome, expected.outcome);
    update_cases::ExpectSameBits(actual.weights, expected.weights);
    update_cases::ExpectSameState(actual.state, expected.state);
  }

  // Steps that build on one another.
  void CompareSteps(Case c, int steps) {
    for (int k = 0; k < steps && !HasFailure(); ++k) {
      Compare(c, k % 2 == 1);
      Result next = update_cases::Apply(c);
      c.arrays.weights = std::move(next.weights);
      c.state = std::move(next.state);
      std::rotate(c.arrays.update.begin(),
                  c.arrays.update.begin() + static_cast<std::ptrdiff_t>(c.cols / 3),
                  c.arrays.update.end());
      for (float& u : c.arrays.update) u = -u;
      ++c.random.stream;
    }
  }
};

bool Serves(const std::string& rule, const std::string& format) {
  return numsim::Serves(ParseUpdateRule(rule), ParseFormat(format));
}

Arrays Signs(const std::string& format, size_t n) {
  Arrays arrays = update_cases::DrawNormal(format, n, 8);
  for (float& u : arrays.update) u = std::copysign(1.0f, u);
  return arrays;
}

TEST_F(UpdateOnDevice, StepsOfHardNumbersEqualTheCpus) {
  for (const std::string& format : kFormats) {
    for (const std::string& rule : kRules) {
      if (!Serves(rule, format)) continue;
      if (format == "fp32" && rule == "stochastic") continue;  // runs on the CPU
      for (const float lr : {0.01f, 1.0f}) {
        Arrays arrays = update_cases::DrawHard(format, lr, 1000, 4);
        CompareSteps(update_cases::MakeCase(format, rule, std::move(arrays), lr), 3);
      }
    }
  }
}

TEST_F(UpdateOnDevice, EverySizeHasItsTail) {
  for (const std::string& rule : kRules) {
    for (const size_t n : {1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 511, 4095, 4096, 4097, 4999}) {
      CompareSteps(
          update_cases::MakeCase("bf16", rule, update_cases::DrawNormal("bf16", n, n), 0.01f), 2);
    }
  }
}

TEST_F(UpdateOnDevice, LargeArraysInSeveralSteps) {
  for (const std::string format : {"bf16", "e4m3fn"}) {
    for (const std::string& rule : kRules) {
      if (!Serves(rule, format)) continue;
      const size_t n = (size_t{1} << 20) + 77;
      CompareSteps(
          update_cases::MakeCase(format, rule, update_cases::DrawNormal(format, n, 3), 1e-3f), 2);
    }
  }
}

TEST_F(UpdateOnDevice, TiesOfSignUpdatesAreBrokenByTheSameWords) {
  for (const std::string format : {"bf16", "e4m3fn", "e2m1fn"}) {
    for (const size_t n : {size_t{300}, size_t{70001}, (size_t{1} << 22) + 3}) {
      for (const std::string rule : {"norm-matched", "projection-matched"}) {
        for (const float lr : {0.1f, 1e-3f}) {
          Compare(update_cases::MakeCase(format, rule, Signs(format, n), lr));
        }
      }
    }
  }
}

TEST_F(UpdateOnDevice, ZerosAndEqualWeightsMakeOneGroup) {
  for (const size_t n : {size_t{5}, size_t{5000}, size_t{200000}}) {
    for (const std::string rule : {"norm-matched", "projection-matched", "naive", "kahan"}) {
      Arrays arrays{std::vector<float>(n, 1.0f), std::vector<float>(n, 0.25f)};
      Compare(update_cases::MakeCase("bf16", rule, arrays, 0.003f));
      for (size_t i = 0; i < n; i += 2) arrays.update[i] = 0;
      for (size_t i = 0; i < n; i += 3) arrays.weights[i] = -0.0f;
      Compare(update_cases::MakeCase("bf16", rule, arrays, 0.003f));
    }
  }
}

TEST_F(UpdateOnDevice, SamplesThatMisjudgeTheThresholdAreFoundOut) {
  for (const LargeKind kind : kLargeKinds) {
    for (const std::string rule : {"norm-matched", "projection-matched"}) {
      const MatchedCase drawn = DrawLarge("bf16", kind, 300001, 6);
      SCOPED_TRACE(ToString(kind));
      Compare(update_cases::MakeCase("bf16", rule, {drawn.weights, drawn.update}, 0.01f));
    }
  }
}

TEST_F(UpdateOnDevice, StepsBelowTheLeastOneMoveOneWeightOrNone) {
  for (const std::string rule : {"norm-matched",
                                 "norm-matched:none",
                                 "projection-matched",
                                 "projection-matched:none",
                                 "naive",
                                 "stochastic"}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Case c =
          update_cases::MakeCase("e4m3fn", rule, update_cases::DrawNormal("e4m3fn", 50, 2), 3e-5f);
      c.random.seed = seed;
      Compare(c);
    }
  }
}

TEST_F(UpdateOnDevice, TargetsOutOfReachMoveNothing) {
  for (const size_t n : {size_t{40}, size_t{100000}}) {
    for (const std::string rule : {"norm-matched", "projection-matched", "naive", "master-fp32"}) {
      Compare(
          update_cases::MakeCase("e2m1fn", rule, update_cases::DrawNormal("e2m1fn", n, 2), 1e5f));
    }
  }
}

TEST_F(UpdateOnDevice, WeightDecayIsThatOfTheWeightsAsTheRuleKnowsThem) {
  for (const std::string& rule : kRules) {
    Case c = update_cases::WithHistory(rule, 5000);
    for (const float decay : {0.1f, -3.0f, 1e38f}) {
      c.weight_decay = decay;
      CompareSteps(c, 2);
    }
  }
}

TEST_F(UpdateOnDevice, ANumberThatIsNotFiniteMovesNothing) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string& rule : kRules) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      for (const size_t at : {size_t{0}, size_t{4999}}) {
        Case c = update_cases::WithHistory(rule, 5000);
        c.arrays.update[at] = bad;
        Compare(c);
        c = update_cases::WithHistory(rule, 5000);
        c.arrays.weights[at] = bad;
        Compare(c);
        c = update_cases::WithHistory(rule, 5000);
        if (c.state.values.empty()) continue;
        c.state.values[at] = bad;
        Compare(c);
      }
    }
  }
}

TEST_F(UpdateOnDevice, NothingMovesWithoutAnUpdateOrARate) {
  for (const std::string& rule : kRules) {
    Case c = update_cases::WithHistory(rule, 100);
    c.learning_rate = 0;
    Compare(c);
    c = update_cases::WithHistory(rule, 100);
    std::fill(c.arrays.update.begin(), c.arrays.update.end(), 0.0f);
    Compare(c);
    Compare(update_cases::MakeCase("bf16", rule, {}, 0.1f));
  }
}

TEST_F(UpdateOnDevice, ScratchMemoryOfAnotherStepDoesNoHarm) {
  for (const std::string& rule : kRules) {
    const Case large =
        update_cases::MakeCase("bf16", rule, update_cases::DrawNormal("bf16", 90000, 1), 0.01f);
    const Case small =
        update_cases::MakeCase("bf16", rule, update_cases::DrawNormal("bf16", 90, 2), 0.01f);
    for (const Case* const c : {&large, &small, &large}) Compare(*c);
  }
}

TEST_F(UpdateOnDevice, UnalignedArraysGiveTheSame) {
  const Case c =
      update_cases::MakeCase("bf16", "naive", update_cases::DrawNormal("bf16", 5000, 1), 0.01f);
  const Result expected = update_cases::Apply(c);
  std::vector<float> shifted(5001);
  std::copy(c.arrays.weights.begin(), c.arrays.weights.end(), shifted.begin() + 1);
  Buffer<float> weights = CopyAt(HostMatrix(shifted, {1, 5001}), place());
  const Buffer<float> update = CopyAt(HostMatrix(c.arrays.update, {1, 5000}), place());
  UpdateState state;
  const MatrixSpan<float> out = weights.View().Columns(1, 5000);
  const WeightUpdate step{ParseFormat("bf16").spec, out, update.View(), 0.01f, 0};
  ApplyUpdate(c.rule, step, c.random, state, out);
  update_cases::ExpectSameBits(ToVector(out), expected.weights);
}

TEST_F(UpdateOnDevice, PassesFollowFromTheArguments) {
  const Case c = update_cases::MakeCase(
      "bf16", "norm-matched", update_cases::DrawNormal("bf16", 500000, 1), 1e-3f);
  const int passes = OnTheDevice(c).outcome.passes;
  EXPECT_GE(passes, 2);
  EXPECT_LE(passes, 6);
  for (int repeat = 0; repeat < 5; ++repeat) EXPECT_EQ(OnTheDevice(c).outcome.passes, passes);
}

TEST_F(UpdateOnDevice, TheBackendCudaTakesHostArraysThere) {
  const ExecutionState kept;
  for (const std::string& rule : kRules) {
    const Case c = update_cases::WithHistory(rule, 3000);
    const Result expected = update_cases::Apply(c);
    ForceBackend("cuda");
    Result actual = update_cases::Apply(c);
    ForceBackend("scalar");
    actual.outcome.passes = expected.outcome.passes;
    update_cases::ExpectIdenticalOutcome(actual.outcome, expected.outcome);
    update_cases::ExpectSameBits(actual.weights, expected.weights);
    update_cases::ExpectSameState(actual.state, expected.state);
    EXPECT_EQ(actual.groups.size(), 1u);
  }
}

TEST_F(UpdateOnDevice, TheBackendCudaRunsOtherRulesOnTheCpu) {
  const ExecutionState kept;
  for (const std::string rule : {"note-as-printed",
                                 "norm-matched@row",
                                 "master-fp16-scaled",
                                 "projection-matched@block:32"}) {
    Case c = update_cases::MakeCase("bf16", rule, update_cases::DrawNormal("bf16", 3200, 1), 0.01f);
    c.rows = 50;
    c.cols = 64;
    update_cases::Restart(c);
    const Result expected = update_cases::Apply(c);
    ForceBackend("cuda");
    const Result actual = update_cases::Apply(c);
    ForceBackend("scalar");
    update_cases::ExpectIdenticalOutcome(actual.outcome, expected.outcome);
    update_cases::ExpectSameBits(actual.weights, expected.weights);
    update_cases::ExpectSameState(actual.state, expected.state);
  }
}

TEST_F(UpdateOnDevice, EverythingLiesAtOnePlace) {
  const Case c = update_cases::WithHistory("master-fp32", 100);
  WeightUpdate step = update_cases::StepOf(c);
  Buffer<float> weights = CopyAt(step.weights, place());
  UpdateState here = update_cases::ToUpdateState(c.state, c.Shape());
  UpdateState there = here.CopiedTo(place());
  const auto error = [&](UpdateState& state) {
    return ErrorOf([&] { ApplyUpdate(c.rule, step, c.random, state, weights.View()); });
  };
  EXPECT_EQ(error(there),
            "ApplyUpdate: 'new_weights' is on the device, expected it on the host with the "
            "weights");
  step.weights = weights.View();
  EXPECT_EQ(error(there),
            "ApplyUpdate: 'update' is on the host, expected it on the device with the weights");
  const Buffer<float> update = CopyAt(step.update, place());
  step.update = update.View();
  EXPECT_EQ(error(here),
            "ApplyUpdate: 'state.values' is on the host, expected it on the device with the "
            "weights");
  EXPECT_EQ(error(there), kNoError);
}

TEST_F(UpdateOnDevice, RulesThatTheDeviceLacksAreErrors) {
  const auto error = [](const char* rule, const char* format) {
    return ErrorOf([&] { CheckOnDevice(ParseUpdateRule(rule), ParseFormat(format).spec); });
  };
  for (const std::string& rule : kRules) EXPECT_EQ(error(rule.c_str(), "bf16"), kNoError);
  for (const char* const rule : {"note-as-printed", "master-fp16-scaled", "norm-matched@row"}) {
    EXPECT_THAT(error(rule, "bf16"), AllOf(HasSubstr(rule), HasSubstr("projection-matched")));
  }
  EXPECT_NE(error("naive", "bnb-e4m3"), kNoError);
  EXPECT_NE(error("stochastic", "fp32"), kNoError);
}

}  // namespace
}  // namespace numsim
