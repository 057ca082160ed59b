// Many more steps than round_step_test.cc has.
#include <gtest/gtest.h>

#include "tests/cast/step_cases.h"
#include "tests/reference/format_param.h"

namespace numsim {
namespace {

class RoundStepOfFormatAtLength : public testing::TestWithParam<oracle::Format> {
 protected:
  const oracle::Grid grid_{GetParam()};
};

TEST_P(RoundStepOfFormatAtLength, RandomStepsAreRoundedOnce) {
  CheckSteps(grid_, RandomSteps(grid_, 300, 11), StepSettings());
}

TEST_P(RoundStepOfFormatAtLength, TiesAndAHairBesideThem) {
  CheckSteps(grid_, TieSteps(grid_, 70, 12), StepSettings());
}

INSTANTIATE_TEST_SUITE_P(AllFormats,
                         RoundStepOfFormatAtLength,
                         testing::ValuesIn(oracle::AllFormats().begin(),
                                           oracle::AllFormats().end()),
                         oracle::ParamName);

}  // namespace
}  // namespace numsim
