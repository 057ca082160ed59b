// Pilots of experiments: their directory, their seeds, and what they do not say.
#include "experiments/runner/pilot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/runner/journal.h"
#include "experiments/runner/seeds.h"
#include "experiments/runner/settings.h"
#include "numsim/io/csv.h"
#include "tests/experiments/run_fixture.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kName = "moment-formats";

RunOptions OptionsOf(const std::filesystem::path& out, int seeds) {
  RunOptions options;
  options.settings = MakeSettings(*FindExperiment(kName), "quick", 0, seeds, TinyRun(kName));
  options.out = out;
  return options;
}

TEST(Pilot, PlansFromSeedsThatDoNotJudge) {
  const TemporaryDirectory directory;
  const std::filesystem::path out = directory.Path() / "pilot";
  const Experiment& experiment = *FindExperiment(kName);
  const PilotReport report = Pilot(experiment, OptionsOf(out, 3));
  ASSERT_EQ(report.claims.size(), experiment.claims.size());

  double seconds = 0;
  for (const FinishedTrial& trial : ReadJournal(out / "journal" / JournalName(0, 1))) {
    seconds += trial.seconds;
    const std::string seed = trial.label.substr(trial.label.find("seed=") + 5);
    EXPECT_GE(std::stoull(seed), kFirstPilotSeed);
    EXPECT_LT(std::stoull(seed), kFirstPilotSeed + 3);
  }
  EXPECT_NEAR(report.core_seconds_per_seed, seconds / 3, 1e-9);

  const Table table = ReadCsv(out / kPilotFile);
  ASSERT_EQ(table.rows.size(), report.claims.size());
  size_t planned = 0;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_EQ(table.Text(i, "claim"), experiment.claims[i].id);
    if (table.Number(i, "seeds") == 0) {
      EXPECT_NE(table.Text(i, "note"), "");
      continue;
    }
    ++planned;
    EXPECT_GT(table.Number(i, "residual_sd"), 0);
    EXPECT_GT(table.Number(i, "core_seconds"), 0);
    EXPECT_LE(table.Number(i, "core_seconds"),
              table.Number(i, "seeds") * report.core_seconds_per_seed * (1 + 1e-12));
  }
  EXPECT_GE(planned, 1u);
  const std::string text = PilotText(report);
  EXPECT_THAT(text, HasSubstr("all planned primary claims: "));
  for (const char* const verdict : {"supported", "contradicted", "inconclusive"}) {
    EXPECT_THAT(text, Not(HasSubstr(verdict)));
    EXPECT_THAT(Bytes(out / kPilotFile), Not(HasSubstr(verdict)));
  }
  for (const char* const file : {"verdicts.csv", "summary.txt", "manifest.json", "final.csv"}) {
    EXPECT_FALSE(std::filesystem::exists(out / file)) << file;
  }
}

TEST(Pilot, ResumesAndIsContinuedByNothingElse) {
  const TemporaryDirectory directory;
  const std::filesystem::path out = directory.Path() / "pilot";
  const Experiment& experiment = *FindExperiment(kName);
  RunOptions options = OptionsOf(out, 2);
  Pilot(experiment, options);
  const std::string file = Bytes(out / kPilotFile);
  EXPECT_THAT(ErrorOf([&] { Pilot(experiment, options); }), HasSubstr("use --resume"));
  options.resume = true;
  EXPECT_EQ(Pilot(experiment, options).run.trials_run, 0u);
  EXPECT_EQ(Bytes(out / kPilotFile), file);
  EXPECT_THAT(ErrorOf([&] { experiments::Run(experiment, options); }),
              HasSubstr("experiment is \"pilot of moment-formats\""));
  EXPECT_NE(ErrorOf([&] { Redraw(out); }), kNoError);
  options.settings.seeds = 3;
  EXPECT_THAT(ErrorOf([&] { Pilot(experiment, options); }), HasSubstr("--seeds"));
}

TEST(Pilot, RunsDoNotJudgeItsSeeds) {
  const TemporaryDirectory directory;
  RunOptions options = OptionsOf(directory.Path() / "run", 2);
  for (const uint64_t seed : {kFirstPilotSeed - 1, kFirstPilotSeed, kFirstTuningSeed}) {
    options.settings.seed = seed;
    EXPECT_THAT(ErrorOf([&] { experiments::Run(*FindExperiment(kName), options); }),
                HasSubstr("expected one below 1000000"));
  }
  options.settings.seed = kFirstPilotSeed - 2;
  CheckJudgingSeeds(options.settings);
  options.settings.max_seeds = 3;
  EXPECT_NE(ErrorOf([&] { CheckJudgingSeeds(options.settings); }), kNoError);
}

TEST(Pilot, NeedsScatterAndClaims) {
  const TemporaryDirectory directory;
  EXPECT_THAT(ErrorOf([&] { Pilot(*FindExperiment(kName), OptionsOf(directory.Path() / "a", 1)); }),
              HasSubstr("a pilot needs at least 2"));
  Experiment without = *FindExperiment(kName);
  without.claims.clear();
  EXPECT_THAT(ErrorOf([&] { Pilot(without, OptionsOf(directory.Path() / "a", 2)); }),
              HasSubstr("has no claims"));
}

}  // namespace
}  // namespace numsim::experiments
