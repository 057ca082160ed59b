// Optimisers of parameters on a device: weights, states and results are those of the host.
#include <gtest/gtest.h>

#include <memory>

#include "numsim/optim/optimizer.h"
#include "tests/optim/optimizer_cases.h"
#include "tests/support/device_test.h"

namespace numsim::optimizer_cases {
namespace {

constexpr uint64_t kSteps = 20;

class OptimizerOnDevice : public DeviceTest {
 protected:
  void Compare(const OptimizerCase& of, bool hard, bool reports) {
    SCOPED_TRACE(of.name);
    ParameterList<float> host_list(5), list(5, InitialValues::kDrawn, place());
    AddTensors(host_list);
    AddTensors(list);
    Optimizer host(of.config, of.scaler, host_list, 7);
    auto there = std::make_unique<Optimizer>(of.config, of.scaler, list, 7);
    there->SetReports(reports);
    there->SetOnlyWriter(!reports);
    for (uint64_t step = 0; step < kSteps && !HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      for (size_t i = 0; i < list.size(); ++i) {
        const std::vector<float> gradient = GradientOf(step, i, list[i].Elements(), hard);
        CopyMatrix<float>(gradient, host_list[i].gradient.View());
        CopyMatrix<float>(gradient, list[i].gradient.View());
      }
      std::vector<uint8_t> without;
      if (step % 4 == 3) {
        without.assign(list.size(), 0);
        without[3] = without[6] = 1;
      }
      const double rate = step == 5 ? 0 : 1e-2;
      const OptimizerStep& expected = host.Step(rate, step, of.measure, without);
      there->Step(rate, step, of.measure, without);
      ExpectSameStep(there->Last(), expected, reports);
      EXPECT_EQ(there->LossScale(), host.LossScale());
      if (step != kSteps / 2) continue;
      // The state moves from the host to the device.
      ExpectSameState(there->Save(), host.Save());
      there = std::make_unique<Optimizer>(of.config, of.scaler, list, 7);
      for (size_t i = 0; i < list.size(); ++i) {
        CopyMatrix<float>(host_list[i].value.View(), list[i].value.View());
      }
      there->Restore(host.Save());
      there->SetReports(reports);
    }
    for (size_t i = 0; i < list.size(); ++i) {
      SCOPED_TRACE(list[i].name);
      ExpectSameFloats(ToVector(list[i].value.View()), ToVector(host_list[i].value.View()));
      EXPECT_EQ(there->StoredBytes(i).Sum(), host.StoredBytes(i).Sum());
    }
    ExpectSameState(there->Save(), host.Save());
  }

  void CompareAll(const std::vector<OptimizerCase>& cases, bool hard, bool reports = true) {
    for (const OptimizerCase& each : cases) {
      if (!HasFailure()) Compare(each, hard, reports);
    }
  }
};

TEST_F(OptimizerOnDevice, EveryMomentGivesTheBitsOfTheHost) { CompareAll(MomentCases(), false); }
TEST_F(OptimizerOnDevice, EveryUpdateRuleGivesTheBitsOfTheHost) {
  CompareAll(WeightCases(), false);
}
TEST_F(OptimizerOnDevice, DecisionsAreThoseOfTheHost) { CompareAll(DecisionCases(), true); }

TEST_F(OptimizerOnDevice, MomentsAreTheSameWithoutReports) {
  CompareAll(WithoutReports(MomentCases()), false, false);
}
TEST_F(OptimizerOnDevice, WeightsAreTheSameWithoutReports) {
  CompareAll(WithoutReports(WeightCases()), false, false);
}
TEST_F(OptimizerOnDevice, DecisionsAreTheSameWithoutReports) {
  CompareAll(WithoutReports(DecisionCases()), true, false);
}

// A state of the device, restored on the host.
TEST_F(OptimizerOnDevice, TheHostGoesOnWithItsState) {
  OptimizerConfig config;
  config.m = ParseMomentFormat("e4m3fn@block+sr");
  config.v = ParseMomentFormat("e4m3fn@coat");
  ParameterList<float> host_list(5), list(5, InitialValues::kDrawn, place());
  AddTensors(host_list);
  AddTensors(list);
  Optimizer host(config, {}, host_list, 7), there(config, {}, list, 7);
  for (uint64_t step = 0; step < 6; ++step) {
    for (size_t i = 0; i < list.size(); ++i) {
      const std::vector<float> gradient = GradientOf(step, i, list[i].Elements(), false);
      CopyMatrix<float>(gradient, host_list[i].gradient.View());
      CopyMatrix<float>(gradient, list[i].gradient.View());
    }
    there.Step(1e-2, step);
    if (step == 3) {
      host.Restore(there.Save());
      for (size_t i = 0; i < list.size(); ++i) {
        CopyMatrix<float>(list[i].value.View(), host_list[i].value.View());
      }
    }
    if (step > 3) host.Step(1e-2, step);
  }
  ExpectSameState(there.Save(), host.Save());
}

// Ten steps start without a wait in between; the result is asked for once.
TEST_F(OptimizerOnDevice, StepsDoNotWaitForOneAnother) {
  const OptimizerConfig config;
  ParameterList<float> list(5, InitialValues::kDrawn, place());
  AddTensors(list);
  Optimizer optimizer(config, {}, list, 7);
  for (uint64_t step = 0; step < 10; ++step) optimizer.Step(1e-2, step);
  EXPECT_EQ(optimizer.Last().tensors.size(), list.size());
}

TEST_F(OptimizerOnDevice, WhatTheDeviceLacksIsNamed) {
  OptimizerConfig config;
  config.update = ParseUpdateRule("master-fp16-scaled");
  ParameterList<float> list(5, InitialValues::kDrawn, place());
  AddTensors(list);
  EXPECT_THROW(Optimizer(config, {}, list, 7), Error);
}

}  // namespace
}  // namespace numsim::optimizer_cases
