// Shared by the tests of Run, Merge and Redraw: a directory, a counting experiment, its bytes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "experiments/runner/journal.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/base/parallel.h"
#include "tests/experiments/made_up_experiment.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

namespace numsim::experiments {

inline std::string Bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Writes a journal anew, with its entries as `change` leaves them and the digests of such entries.
template <typename Change>
void RewriteJournal(const std::filesystem::path& path, Change change) {
  std::vector<FinishedTrial> entries = ReadJournal(path);
  std::filesystem::remove(path);
  Journal journal(path);
  for (FinishedTrial& entry : entries) {
    change(entry);
    journal.Append(entry);
  }
}

class RunFixture : public testing::Test {
 protected:
  // Name and bytes of what must be the same for any threads, shards and resumes.
  using Results = std::map<std::string, std::string>;

  RunFixture() : threads_before_(ThreadCount()) {}
  ~RunFixture() override { SetThreadCount(threads_before_); }

  // Hides testing::Test::Run.
  static RunReport Run(const Experiment& experiment, const RunOptions& options) {
    return experiments::Run(experiment, options);
  }

  // The made-up experiment, which counts its runs in calls_ and throws at the trial fail_at_.
  Experiment Counting() {
    Experiment experiment = MadeUpExperiment();
    experiment.run = [this](const Settings& settings, const Trial& trial) {
      ++calls_;
      if (trial.label == fail_at_) throw Error("made to fail");
      return MadeUpRun(settings, trial);
    };
    return experiment;
  }

  RunOptions Options(const std::filesystem::path& out) const {
    RunOptions options;
    options.settings = settings_;
    options.out = out;
    options.command = {"numsim", "run", "made_up"};
    return options;
  }

  RunOptions Resume(const std::filesystem::path& out) const {
    RunOptions options = Options(out);
    options.resume = true;
    return options;
  }

  RunOptions Shard(const std::filesystem::path& out, int index, int count) const {
    RunOptions options = Options(out);
    options.shard_index = index;
    options.shard_count = count;
    return options;
  }

  std::filesystem::path Directory(const std::string& name) const {
    return temporary_.Path() / name;
  }

  static Results ResultsIn(const std::filesystem::path& directory) {
    Results results;
    for (const char* name : {"values.csv", "sums.csv", "summary.txt"}) {
      results[name] = Bytes(directory / name);
    }
    return results;
  }

  // The results of one undisturbed run in one thread.
  Results Expected() {
    const std::filesystem::path out = Directory("expected");
    if (!std::filesystem::exists(out)) {
      const int threads = ThreadCount();
      SetThreadCount(1);
      Run(MadeUpExperiment(), Options(out));
      SetThreadCount(threads);
    }
    return ResultsIn(out);
  }

  static bool HasOutputs(const std::filesystem::path& directory) {
    const auto exists = [&](const char* name) { return std::filesystem::exists(directory / name); };
    return exists("values.csv") || exists("sums.csv") || exists("summary.txt") ||
           exists("manifest.json");
  }

  const TemporaryDirectory temporary_;
  const int threads_before_;
  Settings settings_ = MakeSettings(MadeUpExperiment(), "quick", 5, 3, {});
  const size_t trials_ = 9;  // of settings_
  std::atomic<int> calls_ = 0;
  std::string fail_at_;
};

}  // namespace numsim::experiments
