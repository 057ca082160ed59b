#include <algorithm>
#include <utility>

#include "experiments/core/completion.h"
#include "experiments/core/journal.h"
#include "experiments/core/merge_check.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/runner.h"
#include "experiments/core/settings.h"
#include "experiments/core/shard_owner.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

// Returns the settings that all shards have in common. Throws Error naming the first difference.
Settings CommonSettings(const Experiment& experiment, const std::vector<fs::path>& shards) {
  if (shards.empty()) throw Error("merge: expected at least one shard directory");
  StoredSettings common;
  for (const fs::path& shard : shards) {
    const StoredSettings stored = ReadSettingsOf(experiment, shard / kSettingsFile);
    if (&shard == &shards.front()) common = stored;
    const std::string difference =
        FirstDifference(common, shards.front().string(), stored, shard.string());
    if (!difference.empty()) {
      throw Error::Format("merge: the shards have different settings: {}", difference);
    }
  }
  return common.settings;
}

void RequireAll(const std::vector<Trial>& trials, const FinishedTrials& finished) {
  if (finished.size() == trials.size()) return;
  std::vector<size_t> missing;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (!finished.contains(i)) missing.push_back(i);
  }
  throw Error::Format(
      "merge: {} of {} trials are in none of the shards: numbers {}; the first is \"{}\"",
      missing.size(),
      trials.size(),
      NumberList(missing),
      trials[missing.front()].label);
}

// Adds the trials that no journal in `out` holds to the journal of an unsharded run there.
void CopyTrials(const Experiment& experiment,
                const std::vector<Trial>& trials,
                const FinishedTrials& finished,
                const fs::path& out) {
  FinishedTrials already_there;
  AddFinishedTrials(experiment, trials, out, already_there);
  if (already_there.size() == finished.size()) return;
  const ShardOwner owner(out, 0, 1, /*take_over=*/false);
  Journal journal(out / kJournalFolder / JournalName(0, 1));
  for (const auto& [index, entry] : finished) {
    if (already_there.contains(index)) continue;
    journal.Append(
        {index, trials[index].label, entry.commit, entry.rows, entry.build, entry.processor});
  }
}

// Adds the trials of the shards to `finished` and returns those that two of them hold.
std::vector<DoubleTrial> Gather(const Experiment& experiment,
                                const std::vector<Trial>& trials,
                                const std::vector<fs::path>& shards,
                                FinishedTrials& finished) {
  std::vector<DoubleTrial> doubles;
  for (const fs::path& shard : shards) {
    for (const size_t i : AddFinishedTrials(experiment, trials, shard, finished)) {
      // The journals of one directory may repeat a trial, after --resume under another --shard.
      const fs::path first = finished.at(i).journal.parent_path().parent_path();
      if (first != shard) doubles.push_back({i, first, shard});
    }
  }
  return doubles;
}

void RequireDifferent(const std::vector<fs::path>& shards) {
  for (size_t i = 0; i < shards.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      std::error_code ignored;
      if (!fs::equivalent(shards[i], shards[j], ignored)) continue;
      throw Error::Format("merge: {} and {} are the same directory; expected each shard once",
                          shards[j].string(),
                          shards[i].string());
    }
  }
}

}  // namespace

RunReport Merge(const Experiment& experiment,
                const std::vector<fs::path>& shards,
                const fs::path& out,
                const std::vector<std::string>& command,
                const std::vector<std::string>& allow) {
  Command ran{.arguments = command};
  CheckAllowed(allow);
  RequireDifferent(shards);
  const Settings settings = CommonSettings(experiment, shards);
  const std::vector<Trial> trials = ListTrials(experiment, settings);
  CheckDirectory(experiment, settings, out);
  FinishedTrials finished;
  const std::vector<DoubleTrial> doubles = Gather(experiment, trials, shards, finished);
  // Those of an earlier merge into `out`.
  AddFinishedTrials(experiment, trials, out, finished);
  RequireAll(trials, finished);
  ran.allowed = CheckAlike(experiment, settings, finished, doubles, allow);
  MakeResultDirectory(out);
  const DirectoryLock lock = LockDirectory(out);
  ClaimDirectory(experiment, settings, out);
  CopyTrials(experiment, trials, finished, out);
  RunReport report;
  report.trials_total = trials.size();
  Complete(experiment, settings, finished, out, ran, report);
  return report;
}

}  // namespace numsim::experiments
