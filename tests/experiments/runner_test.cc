#include "experiments/runner/runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "experiments/runner/exit_code.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/trial_context.h"
#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/io/manifest.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"

namespace numsim::experiments {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

using RunnerTest = RunFixture;

TEST(ExitCodes, AreTheOnesThatScriptsKnow) {
  EXPECT_EQ(kStoppedBySignal, 75);
  EXPECT_EQ(kNextLook, 3);
}

// A checkpoint of another experiment, settings, trial or build is not continued and, where results
// depend on the processor, none of another one.
TEST_F(RunnerTest, TheIdentityOfATrialNamesItsSettingsBuildAndProcessor) {
  Experiment experiment = Counting();
  std::map<std::string, NamedTexts> identities;
  experiment.run = [&](const Settings& settings, const Trial& trial) {
    identities[trial.label] = trial.context->identity;
    return MadeUpRun(settings, trial);
  };
  SetThreadCount(1);
  const fs::path out = Directory("out");
  Run(experiment, Options(out));
  ASSERT_EQ(identities.size(), trials_);
  const std::string build = fmt::format("{} {}", BuildCompiler(), BuildType());
  for (const auto& [label, identity] : identities) {
    EXPECT_EQ(identity,
              (NamedTexts{{"experiment", "made_up"},
                          {"settings", Sha256OfText(Bytes(out / "settings.json"))},
                          {"trial", label},
                          {"commit", std::string(BuildCommit())},
                          {"build", build}}));
  }
  settings_.options["shapes"] = "library";
  identities.clear();
  Run(experiment, Options(Directory("library")));
  for (const auto& [label, identity] : identities) {
    const std::string processor = fmt::format("{}, {}", DescribeHost().cpu, BackendName());
    EXPECT_EQ(identity.back(), (std::pair<std::string, std::string>("processor", processor)));
    EXPECT_EQ(identity.size(), 6u);
  }
}

TEST_F(RunnerTest, WritesEveryTableInTheOrderOfTheTrials) {
  const fs::path out = Directory("out");
  const RunReport report = Run(Counting(), Options(out));
  EXPECT_EQ(report.trials_total, trials_);
  EXPECT_EQ(report.trials_run, trials_);
  EXPECT_EQ(report.trials_missing, 0u);
  EXPECT_EQ(report.outputs,
            (std::vector<std::string>{
                "values.csv", "sums.csv", "verdicts.csv", "summary.txt", "manifest.json"}));
  EXPECT_EQ(report.summary, Bytes(out / "summary.txt"));
  EXPECT_TRUE(report.notice.empty());

  const Table values = ReadCsv(out / "values.csv");
  std::vector<std::string> order;
  for (size_t i = 0; i < values.rows.size(); ++i) {
    if (values.Text(i, "row") == "0") {
      order.push_back(values.Text(i, "shape") + " seed=" + values.Text(i, "seed"));
    }
    EXPECT_EQ(values.Text(i, "remark"), "a \"b\", c");
  }
  std::vector<std::string> labels;
  for (const Trial& trial : MadeUpTrials(settings_)) labels.push_back(trial.label);
  EXPECT_EQ(order, labels);
  EXPECT_EQ(ReadCsv(out / "sums.csv").rows.size(), 3u);
}

TEST_F(RunnerTest, StartsExpensiveTrialsFirst) {
  SetThreadCount(1);
  std::vector<double> costs;
  Experiment experiment = MadeUpExperiment();
  experiment.run = [&](const Settings& settings, const Trial& trial) {
    costs.push_back(trial.cost);
    return MadeUpRun(settings, trial);
  };
  Run(experiment, Options(Directory("out")));
  EXPECT_EQ(costs.size(), trials_);
  EXPECT_TRUE(std::is_sorted(costs.rbegin(), costs.rend()));
}

TEST_F(RunnerTest, ThreadsDoNotChangeTheResults) {
  for (const int threads : {1, 2, 3, 16}) {
    SetThreadCount(threads);
    const fs::path out = Directory(std::to_string(threads));
    Run(Counting(), Options(out));
    EXPECT_EQ(ResultsIn(out), Expected()) << threads;
  }
}

TEST_F(RunnerTest, AFailingTrialKeepsTheFinishedOnesAndWritesNoOutputs) {
  const std::vector<Trial> trials = MadeUpTrials(settings_);
  for (const int threads : {1, 3}) {
    for (const Trial& bad : trials) {
      SetThreadCount(threads);
      const fs::path out = Directory(bad.label + " " + std::to_string(threads));
      calls_ = 0;
      fail_at_ = bad.label;
      EXPECT_EQ(ErrorOf([&] { Run(Counting(), Options(out)); }),
                "made_up, trial \"" + bad.label +
                    "\": made to fail (finished trials are kept; --resume continues)");
      EXPECT_FALSE(HasOutputs(out));
      const size_t kept = ReadJournal(out / "journal" / "0-of-1.jsonl").size();
      EXPECT_EQ(kept, static_cast<size_t>(calls_) - 1);

      fail_at_.clear();
      calls_ = 0;
      if (kept > 0) {
        EXPECT_THAT(ErrorOf([&] { Run(Counting(), Options(out)); }), HasSubstr("use --resume"));
        EXPECT_EQ(calls_, 0);
      }
      const RunReport report = Run(Counting(), Resume(out));
      EXPECT_EQ(report.trials_run, trials_ - kept);
      EXPECT_EQ(calls_, static_cast<int>(trials_ - kept)) << "finished trials are not run again";
      EXPECT_EQ(ResultsIn(out), Expected());
    }
  }
}

TEST_F(RunnerTest, AFailureOfAnotherKindPassesThrough) {
  Experiment experiment = MadeUpExperiment();
  experiment.run = [](const Settings&, const Trial&) -> Rows { throw std::bad_alloc(); };
  SetThreadCount(3);
  EXPECT_THROW(Run(experiment, Options(Directory("out"))), std::bad_alloc);
}

// journal_test.cc cuts at every byte.
TEST_F(RunnerTest, ResumesFromAJournalCutWithinItsLastLine) {
  const fs::path out = Directory("out");
  const fs::path journal = out / "journal" / "0-of-1.jsonl";
  SetThreadCount(1);
  Run(Counting(), Options(out));
  const std::string bytes = Bytes(journal);
  const size_t last_line = bytes.rfind('\n', bytes.size() - 2) + 1;
  const size_t end = bytes.size();  // behind the newline
  for (size_t length : {last_line, last_line + 1, (last_line + end) / 2, end - 2, end - 1}) {
    std::ofstream(journal) << bytes.substr(0, length);
    for (const char* name :
         {"values.csv", "sums.csv", "verdicts.csv", "summary.txt", "manifest.json"}) {
      fs::remove(out / name);
    }
    calls_ = 0;
    Run(Counting(), Resume(out));
    ASSERT_EQ(calls_, 1) << length;
    ASSERT_EQ(ResultsIn(out), Expected()) << length;
    // The line is that of before, except for the seconds that the trial took.
    const std::string again = Bytes(journal), seconds = "\"seconds\":";
    ASSERT_EQ(again.substr(0, again.rfind(seconds)), bytes.substr(0, bytes.rfind(seconds)))
        << length;
  }
}

TEST_F(RunnerTest, ResumeOfACompleteRunWritesTheSameOutputsAgain) {
  const fs::path out = Directory("out");
  Run(Counting(), Options(out));
  calls_ = 0;
  fs::remove(out / "sums.csv");
  const RunReport report = Run(Counting(), Resume(out));
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(report.trials_run, 0u);
  EXPECT_EQ(report.trials_missing, 0u);
  EXPECT_EQ(ResultsIn(out), Expected());
}

// A directory of a version that did not have the option yet.
TEST_F(RunnerTest, ResumesWhereTheExperimentHasGainedAnOptionThatIsEmptyByDefault) {
  const fs::path out = Directory("out");
  Run(Counting(), Options(out));
  calls_ = 0;
  Experiment newer = Counting();
  newer.options.push_back({"file", "", "", "an input"});
  RunOptions options = Resume(out);
  options.settings.options["file"] = "";
  EXPECT_EQ(Run(newer, options).trials_run, 0u);
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(ResultsIn(out).at("values.csv"), Expected().at("values.csv"));

  options.settings.options["file"] = "mine.npy";
  EXPECT_THAT(ErrorOf([&] { Run(newer, options); }),
              HasSubstr("--file is \"\" in " + (out / "settings.json").string()));
  newer.options.back().quick = "other";
  options.settings.options["file"] = "other";
  EXPECT_THAT(ErrorOf([&] { Run(newer, options); }), HasSubstr("--file"));
}

TEST_F(RunnerTest, ResumeWhereNothingWasRunIsAnOrdinaryRun) {
  const fs::path out = Directory("out");
  EXPECT_EQ(Run(Counting(), Resume(out)).trials_run, trials_);
  EXPECT_EQ(ResultsIn(out), Expected());
}

TEST_F(RunnerTest, ACompleteRunStartsOver) {
  const fs::path out = Directory("out");
  Run(Counting(), Options(out));
  std::ofstream(out / "note.txt") << "mine";
  calls_ = 0;
  EXPECT_EQ(Run(Counting(), Options(out)).trials_run, trials_);
  EXPECT_EQ(calls_, static_cast<int>(trials_));
  EXPECT_EQ(ResultsIn(out), Expected());
  EXPECT_EQ(Bytes(out / "note.txt"), "mine");

  fail_at_ = MadeUpTrials(settings_).back().label;
  EXPECT_THROW(Run(Counting(), Options(out)), Error);
  EXPECT_FALSE(HasOutputs(out)) << "the earlier outputs must not look like this run's";
}

TEST_F(RunnerTest, NoTrialBeginsAfterOneFailed) {
  settings_.options["shapes"] = "a,b,c,d,e,f,g,h";
  Experiment experiment = MadeUpExperiment();
  std::atomic<bool> failed = false;
  experiment.run = [&](const Settings& settings, const Trial& trial) {
    if (calls_++ == 0) {
      failed = true;
      throw Error("made to fail");
    }
    for (int i = 0; i < 1000 && !failed; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return MadeUpRun(settings, trial);
  };
  SetThreadCount(3);
  EXPECT_THROW(Run(experiment, Options(Directory("out"))), Error);
  EXPECT_LT(calls_, 12) << "of 24";
}

TEST_F(RunnerTest, FinishedTrialsWithoutOutputsAreNotThrownAway) {
  const fs::path out = Directory("out");
  Run(Counting(), Options(out));
  fs::remove(out / "manifest.json");  // As when the process is killed while it draws figures.
  EXPECT_EQ(ErrorOf([&] { Run(Counting(), Options(out)); }),
            out.string() +
                ": holds an unfinished run (9 of 9 trials of this shard); use --resume "
                "to continue it or another --out");
  calls_ = 0;
  Run(Counting(), Resume(out));
  EXPECT_EQ(calls_, 0);
  EXPECT_TRUE(fs::exists(out / "manifest.json"));
}

TEST_F(RunnerTest, OtherSettingsInTheDirectoryAreAnErrorNamingTheOption) {
  const fs::path out = Directory("out");
  Run(Counting(), Options(out));
  const Results before = ResultsIn(out);
  settings_.options["rows"] = "4";
  const std::string expected =
      out.string() + ": holds results of other settings: --rows is \"2\" in " +
      (out / "settings.json").string() + " and \"4\" in this run; use another --out";
  EXPECT_EQ(ErrorOf([&] { Run(Counting(), Resume(out)); }), expected);
  EXPECT_EQ(ErrorOf([&] { Run(Counting(), Options(out)); }), expected);
  settings_.seed = 6;
  EXPECT_THAT(ErrorOf([&] { Run(Counting(), Options(out)); }), HasSubstr("--seed is \"5\""));
  EXPECT_EQ(ResultsIn(out), before);
}

TEST_F(RunnerTest, FilesOfNoRunAreNotReplaced) {
  for (const char* name : {"sums.csv", "summary.txt", "manifest.json"}) {
    const fs::path out = Directory(std::string("with ") + name);
    fs::create_directories(out);
    std::ofstream(out / name) << "mine";
    EXPECT_EQ(ErrorOf([&] { Run(Counting(), Options(out)); }),
              out.string() + ": holds " + name +
                  " but no settings.json that describes its run; use another --out");
    EXPECT_EQ(Bytes(out / name), "mine");
    EXPECT_FALSE(fs::exists(out / "journal"));
  }
}

TEST_F(RunnerTest, ADirectoryThatCannotBeMadeIsAnError) {
  std::ofstream(Directory("file")) << "mine";
  EXPECT_THAT(ErrorOf([&] { Run(Counting(), Options(Directory("file"))); }), HasSubstr("--out"));
  EXPECT_THAT(ErrorOf([&] { Run(Counting(), Options(Directory("file") / "out")); }),
              HasSubstr("--out"));
}

TEST_F(RunnerTest, ACorruptJournalIsAnErrorNamingFileAndLine) {
  const fs::path out = Directory("out");
  const fs::path journal = out / "journal" / "0-of-1.jsonl";
  Run(Counting(), Options(out));
  std::string bytes = Bytes(journal);
  bytes[bytes.find('\n') + 1] = '!';
  std::ofstream(journal, std::ios::binary) << bytes;
  EXPECT_TRUE(ErrorOf([&] {
                Run(Counting(), Resume(out));
              }).starts_with(journal.string() + ":2: expected a finished trial"));
}

TEST_F(RunnerTest, AJournalOfOtherTrialsIsAnErrorNamingFileAndLine) {
  const fs::path out = Directory("out");
  const fs::path journal = out / "journal" / "0-of-1.jsonl";
  SetThreadCount(1);
  Run(Counting(), Options(out));
  Experiment changed = Counting();
  changed.trials = [](const Settings& settings) {
    std::vector<Trial> trials = MadeUpTrials(settings);
    std::rotate(trials.begin(), trials.begin() + 1, trials.end());
    return trials;
  };
  EXPECT_TRUE(ErrorOf([&] {
                Run(changed, Resume(out));
              }).starts_with(journal.string() + ":1: made by another version of made_up: trial "));
  changed = Counting();
  changed.tables[0].columns.pop_back();
  EXPECT_THAT(ErrorOf([&] { Run(changed, Resume(out)); }),
              HasSubstr("has 4 columns and a row has 5"));
}

TEST_F(RunnerTest, OneProcessAtATimeRunsAShard) {
  const fs::path out = Directory("out");
  fail_at_ = MadeUpTrials(settings_).back().label;
  EXPECT_THROW(Run(Counting(), Options(out)), Error);
  const Journal other_process(out / "journal" / "0-of-1.jsonl");
  EXPECT_THAT(ErrorOf([&] { Run(Counting(), Resume(out)); }), HasSubstr("another process"));
}

TEST_F(RunnerTest, OptionsThatLeaveNoTrialsAreAnError) {
  Experiment experiment = Counting();
  experiment.trials = [](const Settings&) { return std::vector<Trial>(); };
  EXPECT_EQ(ErrorOf([&] { Run(experiment, Options(Directory("out"))); }),
            "made_up: these options leave no trials to run");
  EXPECT_FALSE(fs::exists(Directory("out")));
}

TEST_F(RunnerTest, ABadOptionIsFoundBeforeTheDirectoryIsMade) {
  settings_.options["rows"] = "many";
  EXPECT_EQ(ErrorOf([&] { Run(Counting(), Options(Directory("out"))); }),
            "--rows \"many\": expected an integer from 1 to 100");
  EXPECT_FALSE(fs::exists(Directory("out")));
}

TEST_F(RunnerTest, ProgressIsOneLineRewrittenInPlace) {
  RunOptions options = Options(Directory("out"));
  testing::internal::CaptureStderr();
  Run(Counting(), options);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  options.progress = true;
  options.out = Directory("with progress");
  testing::internal::CaptureStderr();
  Run(Counting(), options);
  const std::string shown = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(shown.starts_with("\r[0/9] ? left  ")) << shown;  // no trial is finished yet
  EXPECT_THAT(shown, HasSubstr("\r[9/9] 0:00 left  "));
  EXPECT_EQ(shown.find('\n'), shown.size() - 1);
}

// Most trials that ran at the same time, and whether their kernels had more than one thread.
struct Overlap {
  std::atomic<int> running = 0, most = 0;
  std::atomic<bool> parallel = false;

  Rows Observe(const Settings& settings, const Trial& trial) {
    const int now = ++running;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    ParallelFor(64, 1, [&](size_t begin, size_t end) {
      if (end - begin < 64) parallel = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    --running;
    return MadeUpRun(settings, trial);
  }
};

TEST_F(RunnerTest, ExclusiveAndTimedTrialsRunOneAtATimeWithEveryThread) {
  SetThreadCount(4);
  for (const std::string mode : {"neither", "exclusive", "timed"}) {
    Overlap overlap;
    Experiment experiment = MadeUpExperiment();
    experiment.exclusive = mode == "exclusive";
    experiment.timed = mode == "timed";
    experiment.run = [&](const Settings& settings, const Trial& trial) {
      return overlap.Observe(settings, trial);
    };
    EXPECT_EQ(Run(experiment, Options(Directory(mode))).trials_run, trials_);
    EXPECT_EQ(overlap.most == 1, mode != "neither") << mode;
    EXPECT_EQ(overlap.parallel, mode != "neither") << mode;
  }
}

// Rows as those of times: no two measurements of a trial agree.
Experiment Timed(std::atomic<int>& calls) {
  Experiment experiment = MadeUpExperiment();
  experiment.timed = true;
  experiment.run = [&calls](const Settings& settings, const Trial& trial) {
    Rows rows = MadeUpRun(settings, trial);
    for (auto& row : rows.at("values")) row[3] = ++calls;
    return rows;
  };
  return experiment;
}

TEST_F(RunnerTest, ResumeKeepsTheTimesOfFinishedTrials) {
  std::atomic<int> calls = 0;
  const Experiment whole = Timed(calls);
  Experiment failing = whole;
  failing.run = [&](const Settings& settings, const Trial& trial) {
    if (calls > 10) throw Error("made to fail");
    return whole.run(settings, trial);
  };
  const fs::path out = Directory("out");
  const fs::path journal = out / "journal" / "0-of-1.jsonl";
  EXPECT_THROW(Run(failing, Options(out)), Error);
  const std::vector<FinishedTrial> kept = ReadJournal(journal);
  ASSERT_GT(kept.size(), 0u);
  EXPECT_EQ(Run(whole, Resume(out)).trials_run, trials_ - kept.size());
  const std::vector<FinishedTrial> all = ReadJournal(journal);
  ASSERT_EQ(all.size(), trials_);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(all[i].rows, kept[i].rows);

  std::vector<Row> rows;
  for (const Trial& trial : MadeUpTrials(settings_)) {
    const auto is_trial = [&](const FinishedTrial& entry) { return entry.label == trial.label; };
    const auto entry = std::find_if(all.begin(), all.end(), is_trial);
    ASSERT_NE(entry, all.end());
    const auto& measured = entry->rows.at("values");
    rows.insert(rows.end(), measured.begin(), measured.end());
  }
  EXPECT_EQ(ReadCsv(out / "values.csv").rows, rows) << "the CSV is what the journal holds";
}

TEST_F(RunnerTest, SummaryOfTimesSaysWhoseTheyAre) {
  std::atomic<int> calls = 0;
  const std::string note = "Times:      The times belong to the machine and the run";
  EXPECT_THAT(Run(Timed(calls), Options(Directory("timed"))).summary, HasSubstr(note));
  EXPECT_THAT(Run(Counting(), Options(Directory("other"))).summary, Not(HasSubstr("Times:")));
}

TEST_F(RunnerTest, TimedTableAloneIsNotedAndItsTrialsRunSideBySide) {
  SetThreadCount(4);
  Overlap overlap;
  Experiment experiment = MadeUpExperiment();
  experiment.tables.push_back({.name = "times", .columns = {{"seconds", ""}}, .timed = true});
  experiment.run = [&](const Settings& settings, const Trial& trial) {
    Rows rows = overlap.Observe(settings, trial);
    rows["times"].push_back({"1"});
    return rows;
  };
  const RunReport report = Run(experiment, Options(Directory("out")));
  EXPECT_GT(overlap.most, 1);
  EXPECT_THAT(report.summary, HasSubstr("Times:      only in times.csv. The times belong"));
  EXPECT_EQ(ReadCsv(Directory("out") / "times.csv").rows.size(), trials_);
}

using RunnerDeathTest = RunFixture;

TEST_F(RunnerDeathTest, RowsThatDoNotFitTheTableAreABrokenContract) {
  // Not "threadsafe": that child would leave a directory of its own behind.
  GTEST_FLAG_SET(death_test_style, "fast");
  SetThreadCount(1);
  Experiment experiment = MadeUpExperiment();
  experiment.run = [](const Settings&, const Trial&) { return Rows{{"sums", {{"ab", "1"}}}}; };
  EXPECT_DEATH(Run(experiment, Options(Directory("out"))), "no measured table \"sums\"");
}

}  // namespace
}  // namespace numsim::experiments
