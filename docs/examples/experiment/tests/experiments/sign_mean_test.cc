#include "experiments/sign_mean/sign_mean.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/runner/settings.h"
#include "tests/experiments/golden_run.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;

TEST(SignMean, OneSignHasAMeanOfOne) {
  const Experiment experiment = SignMean();
  const Settings settings = MakeSettings(experiment, "quick", 0, 1, {{"k", "1"}});
  const Table means = RowsOf(experiment, settings, experiment.trials(settings)[0]);
  EXPECT_EQ(means.Number(0, "mean"), 1);
}

// The mean square of the mean of k signs is 1 / k.
TEST(SignMean, ManyDrawsHaveTheExactMeanSquare) {
  const Experiment experiment = SignMean();
  const Settings settings =
      MakeSettings(experiment, "quick", 7, 1, {{"k", "4"}, {"draws", "20000"}});
  const Table means = RowsOf(experiment, settings, experiment.trials(settings)[0]);
  EXPECT_NEAR(std::pow(means.Number(0, "mean"), 2), 0.25, 0.01);
}

TEST(SignMean, BadOptionsAreNamed) {
  const Experiment experiment = SignMean();
  for (const auto& [option, value] : {std::pair{"k", "0"}, {"k", "4,4"}, {"draws", "none"}}) {
    const Settings settings = MakeSettings(experiment, "quick", 0, 1, {{option, value}});
    EXPECT_THAT(ErrorOf([&] { experiment.trials(settings); }), HasSubstr(option));
  }
}

TEST(SignMean, ARunMeasuresTheSlope) {
  const Experiment experiment = SignMean();
  const TemporaryDirectory directory;
  const Settings settings = MakeSettings(experiment, "quick", 0, 3, {});
  const RunReport report = RunWithoutFigures(experiment, settings, directory.Path() / "out");
  EXPECT_THAT(report.summary, HasSubstr("no evidence: the claim names no control"));
  EXPECT_EQ(experiment.figures(settings, {{"means", ReadCsv(directory.Path() / "out/means.csv")}})
                .front()
                .panels.front()
                .series.front()
                .x.size(),
            3u);
}

}  // namespace
}  // namespace numsim::experiments
