// Shared by the tests of `swiglu-alignment`: settings of models that train in milliseconds.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "experiments/runner/settings.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "numsim/base/parallel.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments::swiglu_alignment {

inline const Overrides kTiny = TinyRun("swiglu-alignment");

// Returns kTiny with these changes.
inline Settings TinySettings(const Overrides& changes = {}, int seeds = 1) {
  Overrides all = kTiny;
  for (const auto& [option, value] : changes) all[option] = value;
  return MakeSettings(SwigluAlignment(), "quick", 0, seeds, all);
}

inline TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  return study::ConfigOf(SwigluAlignmentStudy(), settings, arm, seed);
}

// One thread: such small models are no faster with more.
class SwigluTraining : public ::testing::Test {
 protected:
  SwigluTraining() { SetThreadCount(1); }
  ~SwigluTraining() override { SetThreadCount(before_); }

 private:
  const int before_ = ThreadCount();
};

}  // namespace numsim::experiments::swiglu_alignment
