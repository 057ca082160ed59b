// Every study that trains says how its training differs from the paper's.
#include "experiments/shared/paper_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "experiments/runner/claim_report.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

bool HasOption(const Experiment& experiment, std::string_view name) {
  return std::any_of(experiment.options.begin(), experiment.options.end(), [&](const Option& o) {
    return o.name == name;
  });
}

size_t CountOf(const Experiment& experiment, std::string_view option) {
  return static_cast<size_t>(
      std::count_if(experiment.paper_settings.begin(),
                    experiment.paper_settings.end(),
                    [&](const PaperSetting& setting) { return setting.option == option; }));
}

// The studies that train models of the papers; update-convergence has problems of its own.
std::vector<const Experiment*> Trainings() {
  std::vector<const Experiment*> result;
  for (const Experiment& experiment : AllExperiments()) {
    if (HasOption(experiment, "steps") && HasOption(experiment, "warmup")) {
      result.push_back(&experiment);
    }
  }
  return result;
}

TEST(PaperTraining, EveryStudyThatTrainsComparesItsTrainingWithThePapers) {
  const std::vector<const Experiment*> trainings = Trainings();
  EXPECT_EQ(trainings.size(), 8u);
  for (const Experiment* const experiment : trainings) {
    for (const char* const option : {"size",
                                     "sizes",
                                     "sizes-clip",
                                     "layers",
                                     "width",
                                     "steps",
                                     "batch",
                                     "batches-clip",
                                     "warmup",
                                     "lr",
                                     "lr-clip",
                                     "epsilon",
                                     "beta2"}) {
      if (!HasOption(*experiment, option)) continue;
      EXPECT_EQ(CountOf(*experiment, option), 1u) << experiment->name << " --" << option;
    }
  }
}

TEST(PaperTraining, SummariesOfTheQuickPresetSaySizeStepsBatchRateAndData) {
  for (const Experiment* const experiment : Trainings()) {
    const Settings settings = MakeSettings(*experiment, "quick", 0, 1, {});
    const std::string text = DeviationsText(experiment->paper_settings, settings);
    EXPECT_THAT(text,
                AnyOf(HasSubstr("--size is "),
                      HasSubstr("--sizes is "),
                      HasSubstr("--sizes-clip is "),
                      HasSubstr("--width is ")))
        << experiment->name;
    EXPECT_THAT(text, HasSubstr("--steps is ")) << experiment->name;
    EXPECT_THAT(text, HasSubstr("--batch")) << experiment->name;
    EXPECT_THAT(text, AnyOf(HasSubstr("LAION"), HasSubstr("Red Pajama"))) << experiment->name;
    // feature-statistics trains at the paper's rate.
    if (experiment->name != "feature-statistics") {
      EXPECT_THAT(text, AnyOf(HasSubstr("--lr is "), HasSubstr("--lr-clip is ")))
          << experiment->name;
    }
  }
}

TEST(PaperTraining, ARowOfTheStudyReplacesTheCommonOne) {
  const std::vector<Option> options = {{"lr", "1", "2", ""}, {"width", "64", "768", ""}};
  const std::vector<PaperSetting> settings =
      PaperTraining(Paper::kFishman, options, {{"lr", "3e-4", "here", "own"}});
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].option, "width");
  EXPECT_EQ(settings[0].paper, "768");
  EXPECT_EQ(settings[1].option, "");
  EXPECT_EQ(settings[2].reason, "own");
}

}  // namespace
}  // namespace numsim::experiments
