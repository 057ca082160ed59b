// Options that a sweep refuses, and plans that are wrong.
#include "experiments/sweep/plan.h"

#include "experiments/runner/completion.h"
#include "experiments/runner/settings.h"
#include "experiments/sweep/estimate.h"
#include "experiments/sweep/sweep_lock.h"
#include "tests/sweep/sweep_test.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

class Plans : public SweepTest {};

TEST_F(Plans, OptionsThatASweepCannotFollowAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"--local 2 --shard 0/2", "--shard: set by the sweep"},
      {"--local 2 --trial-costs x", "--trial-costs: set by the sweep"},
      {"--local 2 --resume", "--resume: set by the sweep"},
      {"--local 2 --until-decided --look 1", "--look: set by the sweep"},
      {"--local 2 --tasks 49 --until-decided --max-seeds 12",
       "tasks: 49 are more than the 48 trials of the largest round"},
      {"", "0 engines are given; expected one of --slurm"},
      {"--local 2 --slurm", "2 engines are given"},
      {"--local 2 --mem 1G", "--mem: only with --slurm"},
      {"--local 2 --tasks 25", "tasks: 25 are more than the 24 trials"},
      {"--slurm --tasks 2 --mem 1;2", "mem: '1;2': expected letters"},
  };
  for (const auto& [options, message] : cases) {
    const Outcome outcome = Sweep(std::string(options) + " --dry-run --out all");
    EXPECT_EQ(outcome.exit_code, 2) << options;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << options;
    EXPECT_FALSE(std::filesystem::exists(Directory() / "all")) << options;
  }
  EXPECT_THAT(Numsim("sweep linear-speed --local 2 --tasks 2").err, HasSubstr("measures times"));
}

TEST_F(Plans, AnotherSweepInTheSameDirectoryIsRefusedOnceTasksHaveBegun) {
  ASSERT_EQ(Sweep("--local 2 --tasks 4 --dry-run --out all").exit_code, 0);
  ASSERT_EQ(Sweep("--local 2 --tasks 2 --out all").exit_code, 0);  // nothing had begun
  EXPECT_EQ(Sweep("--local 2 --tasks 2 --out all").exit_code, 0);  // the same sweep
  const Outcome other = Sweep("--local 2 --tasks 3 --out all");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("holds tasks of another sweep"));
}

// The lock is that of a sweep that is being written, or whose tasks run.
TEST_F(Plans, TwoSweepsDoNotBeginInOneDirectory) {
  ASSERT_EQ(Sweep("--local 2 --tasks 4 --dry-run --out all").exit_code, 0);
  const std::string plan = Text("all/sweep/plan.json"), script = Text("all/sweep/task.sh");
  {
    const experiments::sweep::SweepLock lock(Directory() / "all/sweep");
    for (const char* const options : {"--local 2 --tasks 3", "--local 2 --tasks 3 --dry-run"}) {
      const Outcome other = Sweep(std::string(options) + " --out all");
      EXPECT_EQ(other.exit_code, 2);
      EXPECT_THAT(other.err, HasSubstr("all/sweep: another sweep is starting there, or tasks are"));
    }
    EXPECT_EQ(Bash("bash all/sweep/launch.sh"), 2);
    EXPECT_THAT(Text("bash.log"), HasSubstr("tasks of this sweep are still running"));
  }
  EXPECT_EQ(Text("all/sweep/plan.json"), plan);
  EXPECT_EQ(Text("all/sweep/task.sh"), script);
  EXPECT_EQ(Sweep("--local 2 --tasks 3 --out all").exit_code, 0);
}

TEST_F(Plans, WrongPlansAreRefusedWithFileFieldAndExpectation) {
  ASSERT_EQ(Sweep("--local 2 --tasks 4 --dry-run --out all").exit_code, 0);
  const std::string plan = "all/sweep/plan.json";
  const std::string good = Text(plan);
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"{\n", "", "expected the plan of a sweep"},
      {"\"engine\": \"local\"", "\"engine\": \"locl\"", "did you mean local"},
      {"\"trials\": 24", "\"trials\": \"24\"", "trials: expected a whole number, found \"24\""},
      {"\"trials\": 24", "\"trials\": 3", "tasks: 4 are more than the 3 trials"},
      {"\"tasks\": 4", "\"tasks\": 0", "tasks: expected a number from 1 to 24, found 0"},
      {"\"tasks\": 4", "\"taks\": 4", "did you mean tasks"},
      {"\"tasks\": 4,", "", "has no field tasks"},
      {"\"resources\": {}", "\"resources\": []", "resources: expected an object of texts"},
      {"\"tasks\": 4", "\"rounds\": [12, 13], \"tasks\": 4", "rounds: expected 24 trials in all"},
      {"\"tasks\": 4",
       "\"rounds\": [0, 24], \"tasks\": 4",
       "rounds: expected a number from 1 to 24"},
      {"\"tasks\": 4", "\"rounds\": 24, \"tasks\": 4", "rounds: expected a list of whole numbers"},
      {"\"hosts\": \"\"", "\"hosts\": \"a\"", "hosts: expected none without parallel"},
      {"\"directory\": \"/", "\"directory\": \"", "directory: expected an absolute path"},
  };
  for (const auto& [from, to, message] : cases) {
    std::ofstream(Directory() / plan) << good;
    Edit(plan, from, to);
    for (const std::string command : {"status", "resume"}) {
      const Outcome outcome = Numsim("sweep " + command + " all");
      EXPECT_EQ(outcome.exit_code, 2) << to;
      EXPECT_THAT(outcome.err, HasSubstr("all/sweep/plan.json: ")) << to;
      EXPECT_THAT(outcome.err, HasSubstr(message)) << to;
    }
  }
  EXPECT_THAT(Numsim("sweep status none").err, HasSubstr("none: holds no sweep"));
}

// The costs of a preset's trials, in these seconds, are what the preset says it takes.
TEST(SecondsPerCost, AreThoseOfThePreset) {
  using namespace experiments;
  size_t timed = 0;
  for (const Experiment& experiment : AllExperiments()) {
    for (const Preset& preset : experiment.presets) {
      if (!(preset.seconds > 0)) continue;
      const Settings settings = MakeSettings(experiment, preset.name, 0, preset.seeds, {});
      double cost = 0;
      for (const Trial& trial : ListTrials(experiment, settings)) cost += trial.cost;
      EXPECT_NEAR(
          sweep::SecondsPerCost(experiment, settings) * cost, preset.seconds, 1e-9 * preset.seconds)
          << experiment.name << " " << preset.name;
      ++timed;
    }
  }
  EXPECT_GT(timed, 10u);
}

TEST(TaskCount, IsFiveMinutesPerTaskAndNoTaskIsEmpty) {
  using experiments::sweep::TaskCount;
  EXPECT_EQ(TaskCount(10, 24, 1), 1u);
  EXPECT_EQ(TaskCount(301, 24, 1), 2u);
  EXPECT_EQ(TaskCount(10, 24, 4), 4u);
  EXPECT_EQ(TaskCount(1e9, 24, 1), 24u);
  EXPECT_EQ(TaskCount(1e9, 5000, 1), 1000u);
  EXPECT_EQ(TaskCount(10, 3, 8), 3u);
}

}  // namespace
}  // namespace numsim::apps
