// Arms of studies that fork from the state of a baseline.
#include "experiments/study/fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/completion.h"
#include "experiments/runner/experiment.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/training_of_row.h"
#include "experiments/runner/trial_toml.h"
#include "numsim/train/run.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/stops.h"
#include "tests/experiments/tiny_runs.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using Overrides = std::map<std::string, std::string>;

// Options of tiny runs whose arms can fork.
Overrides ForkableRun(const std::string& name) {
  Overrides options = TinyRun(name);
  if (name == "fp8-interventions") options["interventions"] = "clip";
  if (name == "swiglu-alignment") options["lrs"] = "3e-3";
  return options;
}

Settings SettingsOf(const std::string& name, const Overrides& others, int seeds = 1) {
  Overrides options = ForkableRun(name);
  for (const auto& [option, value] : others) options[option] = value;
  return MakeSettings(*FindExperiment(name), "quick", 3, seeds, options);
}

const std::map<std::string, std::string>& ForksAfter() {
  static const std::map<std::string, std::string> steps = {{"fp8-interventions", "5"},
                                                           {"loss-scaling", "7"},
                                                           {"loss-spikes", "11"},
                                                           {"moment-formats", "9"},
                                                           {"swiglu-alignment", "30"},
                                                           {"switchback-accuracy", "4"}};
  return steps;
}

// Trials that train, in their order.
std::vector<Trial> Trainings(const Experiment& experiment, const Settings& settings) {
  std::vector<Trial> trainings;
  for (const Trial& trial : experiment.trials(settings)) {
    if (!experiment.rows.trainings(settings, trial).empty()) trainings.push_back(trial);
  }
  return trainings;
}

TrainConfig ConfigOf(const Experiment& experiment, const Settings& settings, const Trial& trial) {
  return experiment.rows.trainings(settings, trial).front().config;
}

// Cells as texts: those that were saved in between are texts.
std::string TextOf(const Rows& rows) {
  std::string text;
  for (const auto& [table, all] : rows) {
    for (const Row& row : all) {
      text += table;
      for (const Cell& cell : row) text += "," + cell.Text();
      text += "\n";
    }
  }
  return text;
}

class ForkedStudy : public testing::TestWithParam<std::string> {
 protected:
  const Experiment& experiment_ = *FindExperiment(GetParam());
  const Settings scratch_ = SettingsOf(GetParam(), {});
  const Settings forked_ = SettingsOf(GetParam(), {{"fork-after", ForksAfter().at(GetParam())}});
};

// The baseline's own rows do not know whether anybody forks from it; those of other arms do.
TEST_P(ForkedStudy, TheBaselineHasTheRowsOfATrainingFromScratch) {
  const std::vector<Trial> trials = Trainings(experiment_, forked_);
  const std::vector<Trial> alone = Trainings(experiment_, scratch_);
  ASSERT_EQ(trials.size(), alone.size());
  size_t baselines = 0, changed = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    const TrainConfig config = ConfigOf(experiment_, forked_, trials[i]);
    ASSERT_GT(config.fork.steps, 0u);
    const bool baseline = config.fork.before.empty();
    baselines += baseline;
    const std::string forked = TextOf(experiment_.run(forked_, trials[i]));
    const std::string scratch = TextOf(experiment_.run(scratch_, alone[i]));
    changed += forked != scratch;
    if (!baseline) continue;  // in so few steps some arms do what the baseline does
    EXPECT_EQ(forked, scratch) << trials[i].label;
  }
  EXPECT_GE(baselines, 1u);
  EXPECT_GE(changed, 1u);
}

// `numsim train` of the file of a trial trains the baseline and the arm in one, and begins and ends with
// the losses of the trial.
TEST_P(ForkedStudy, NumsimTrainRepeatsATrial) {
  std::vector<std::string> assignments;
  for (const auto& [option, value] : forked_.options) assignments.push_back(option + "=" + value);
  Settings settings = forked_;
  settings.seed = 0;  // those of a file
  settings.seeds = FindPreset(experiment_, "quick").seeds;
  const std::vector<Trial> trials = experiment_.trials(settings);
  size_t number = trials.size() - 1;
  while (experiment_.rows.trainings(settings, trials[number]).empty()) --number;
  ASSERT_FALSE(ConfigOf(experiment_, settings, trials[number]).fork.before.empty());
  const std::string toml = TrialToml(experiment_, "quick", assignments, number);
  EXPECT_THAT(toml, HasSubstr("[fork]\n"));
  const TemporaryDirectory directory;
  TrainRunOptions options;
  options.out = directory.Path() / "run";
  options.figures = false;
  RunTraining(ParseTrainConfig(toml, "trial.toml", {}, {}), options);
  const Table valid = ReadCsv(options.out / "valid.csv");
  const Rows rows = experiment_.run(settings, trials[number]);
  size_t compared = 0;
  for (const TableSpec& spec : experiment_.tables) {
    const auto has = [&](const char* name) {
      return std::ranges::count(spec.columns, name, &Column::name) > 0;
    };
    if (spec.derived || !has("status")) continue;
    Table runs{ColumnNames(spec), rows.at(spec.name)};
    if (has("start_loss")) {
      EXPECT_EQ(runs.Text(0, "start_loss"), valid.Text(0, "loss"));
    }
    EXPECT_EQ(runs.Text(0, "valid_loss"), valid.Text(valid.rows.size() - 1, "loss"));
    ++compared;
  }
  EXPECT_EQ(compared, 1u);
}

// The results of a run in `out`, without what says when and how it was made.
std::map<std::string, std::string> ResultsIn(const std::filesystem::path& out) {
  std::map<std::string, std::string> results;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".csv") || name == "summary.txt") results[name] = Bytes(entry.path());
  }
  return results;
}

std::vector<std::string> ForkFilesIn(const std::filesystem::path& out) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(out / "journal")) {
    const std::string name = entry.path().filename();
    if (name.starts_with("fork-")) files.push_back(name);
  }
  return files;
}

// Threads share one baseline per seed, a shard trains its own, and a process that trained none of it
// reads it.
TEST(ForkedRuns, HaveTheSameBytesForAnyThreadsAndShards) {
  const Experiment& experiment = *FindExperiment("moment-formats");
  Experiment plain = experiment;
  plain.figures = nullptr;
  const Settings settings =
      SettingsOf("moment-formats", {{"fork-after", "9"}, {"pairs", "none"}}, 2);
  const TemporaryDirectory directory;
  const int before = ThreadCount();
  for (const int threads : {1, 3}) {
    SetThreadCount(threads);
    RunWithoutFigures(experiment, settings, directory.Path() / std::to_string(threads));
  }
  for (const int shard : {0, 1}) {
    RunOptions options;
    options.settings = settings;
    options.out = directory.Path() / ("shard" + std::to_string(shard));
    options.shard_index = shard;
    options.shard_count = 2;
    experiments::Run(plain, options);
    EXPECT_FALSE(ForkFilesIn(options.out).empty());  // this shard cannot know that it was the last
  }
  SetThreadCount(before);
  Merge(plain,
        {directory.Path() / "shard0", directory.Path() / "shard1"},
        directory.Path() / "merged",
        {});
  const auto expected = ResultsIn(directory.Path() / "1");
  EXPECT_THAT(expected.at("summary.txt"), HasSubstr("--fork-after 9"));
  EXPECT_THAT(expected.at("verdicts.csv"), HasSubstr("arms forked after 9 steps of a baseline"));
  EXPECT_EQ(ResultsIn(directory.Path() / "3"), expected);
  EXPECT_EQ(ResultsIn(directory.Path() / "merged"), expected);
  EXPECT_TRUE(ForkFilesIn(directory.Path() / "1").empty());
}

TEST(ForkedRuns, StopsAndKillsChangeNothing) {
  const Experiment& experiment = *FindExperiment("moment-formats");
  const Settings settings = SettingsOf("moment-formats", {{"fork-after", "9"}, {"pairs", "none"}});
  const Trial trial = Trainings(experiment, settings).back();
  ASSERT_FALSE(ConfigOf(experiment, settings, trial).fork.before.empty());
  ExpectStopsChangeNothing(experiment, settings, trial);
}

// A baseline that was kept is used: a changed one changes the arms. One of other settings is not.
TEST(ForkedRuns, TheBaselineIsTrainedOncePerSeed) {
  const Experiment& experiment = *FindExperiment("moment-formats");
  const Settings settings = SettingsOf("moment-formats", {{"fork-after", "9"}, {"pairs", "none"}});
  const TemporaryDirectory directory;
  std::vector<std::string> said;
  TrialContext context{.folder = directory.Path(),
                       .trial = 1,
                       .identity = {{"trial", "one"}, {"settings", "a"}},
                       .save_every = 1e9,
                       .stop = [] { return false; },
                       .say = [&](const std::string& line) { said.push_back(line); }};
  std::vector<Trial> trials = Trainings(experiment, settings);
  for (Trial& trial : trials) {
    trial.context = &context;
    experiment.run(settings, trial);
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory.Path())) {
    if (entry.path().filename().string().starts_with("fork-")) files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(said.empty());
  const std::string expected = TextOf(experiment.run(settings, trials.back()));
  // Another trial of the same settings reads it; other settings do not.
  context.identity[0].second = "two";
  EXPECT_EQ(TextOf(experiment.run(settings, trials.back())), expected);
  EXPECT_TRUE(said.empty());
  context.identity[1].second = "b";
  EXPECT_EQ(TextOf(experiment.run(settings, trials.back())), expected);
  EXPECT_THAT(said, Contains(HasSubstr("the baseline is trained anew")));
  std::ofstream(files.front(), std::ios::binary) << "damaged";
  said.clear();
  EXPECT_EQ(TextOf(experiment.run(settings, trials.back())), expected);
  EXPECT_THAT(said, Contains(HasSubstr("the baseline is trained anew")));
}

TEST(ForkedRuns, SettingsWithoutTheOptionAreAsBefore) {
  const Settings plain = SettingsOf("moment-formats", {});
  EXPECT_FALSE(plain.options.contains("fork-after"));
  EXPECT_FALSE(SettingsOf("moment-formats", {{"fork-after", "0"}}).options.contains("fork-after"));
  EXPECT_EQ(SettingsOf("moment-formats", {{"fork-after", "9"}}).options.at("fork-after"), "9");
}

std::string ErrorOfTrials(const std::string& name, const Overrides& others) {
  const Settings settings = SettingsOf(name, others);
  return ErrorOf([&] { FindExperiment(name)->trials(settings); });
}

TEST(ForkedRuns, WhatCannotForkIsRefused) {
  EXPECT_THAT(ErrorOfTrials("moment-formats", {{"fork-after", "20"}}),
              HasSubstr("--fork-after: 20 is not below train.steps = 20"));
  EXPECT_THAT(ErrorOfTrials("moment-formats", {{"fork-after", "x"}}), HasSubstr("--fork-after"));
  EXPECT_THAT(
      ErrorOfTrials("fp8-interventions", {{"fork-after", "5"}, {"interventions", "qk-norm"}}),
      HasSubstr("cannot go on from bf16 none: model.qk_norm: a fork keeps it"));
  EXPECT_THAT(ErrorOfTrials("loss-spikes", {{"fork-after", "5"}, {"optimizers", "lion:3"}}),
              HasSubstr("optimizer.kind: lion cannot go on from the states of adamw"));
  EXPECT_THAT(ErrorOfTrials("moment-formats", {{"keys", "fork.steps=3"}}),
              HasSubstr("--fork-after says after how many steps arms fork"));
  for (const char* const name : {"feature-statistics", "fp8-outliers"}) {
    EXPECT_THAT(ErrorOf([&] {
                  SettingsOf(name, {{"fork-after", "5"}});
                }),
                HasSubstr("has no such option"));
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         ForkedStudy,
                         testing::Values("fp8-interventions",
                                         "loss-scaling",
                                         "loss-spikes",
                                         "moment-formats",
                                         "swiglu-alignment",
                                         "switchback-accuracy"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace numsim::experiments
