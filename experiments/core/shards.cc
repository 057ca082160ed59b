#include <algorithm>
#include <utility>

#include "experiments/core/completion.h"
#include "experiments/core/journal.h"
#include "experiments/core/result_directory.h"
#include "experiments/core/runner.h"
#include "experiments/core/settings.h"
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
  size_t missing = 0;
  while (finished.contains(missing)) ++missing;
  throw Error::Format("merge: {} of {} trials are in none of the shards; the first is \"{}\"",
                      trials.size() - finished.size(),
                      trials.size(),
                      trials[missing].label);
}

// Adds the trials that no journal in `out` holds to the journal of an unsharded run there.
void CopyTrials(const Experiment& experiment,
                const std::vector<Trial>& trials,
                const FinishedTrials& finished,
                const fs::path& out) {
  FinishedTrials already_there;
  AddFinishedTrials(experiment, trials, out, already_there);
  if (already_there.size() == finished.size()) return;
  Journal journal(out / kJournalFolder / JournalName(0, 1));
  for (const auto& [index, entry] : finished) {
    if (already_there.contains(index)) continue;
    journal.Append({index, trials[index].label, entry.commit, entry.rows});
  }
}

}  // namespace

RunReport Merge(const Experiment& experiment,
                const std::vector<fs::path>& shards,
                const fs::path& out,
                const std::vector<std::string>& command) {
  const Command ran{.arguments = command};
  const Settings settings = CommonSettings(experiment, shards);
  const std::vector<Trial> trials = ListTrials(experiment, settings);
  CheckDirectory(experiment, settings, out);
  FinishedTrials finished;
  for (const fs::path& shard : shards) AddFinishedTrials(experiment, trials, shard, finished);
  AddFinishedTrials(experiment, trials, out, finished);
  RequireAll(trials, finished);
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
