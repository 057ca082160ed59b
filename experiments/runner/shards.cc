#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "experiments/runner/completion.h"
#include "experiments/runner/journal.h"
#include "experiments/runner/looks.h"
#include "experiments/runner/merge_check.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "experiments/runner/shard_owner.h"
#include "numsim/base/error.h"
#include "numsim/io/durable.h"

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

// Throws Error naming the trials that are missing.
void RequireAll(const std::vector<Trial>& trials,
                const std::vector<size_t>& wanted,
                const FinishedTrials& finished) {
  std::vector<size_t> missing;
  for (const size_t i : wanted) {
    if (!finished.contains(i)) missing.push_back(i);
  }
  if (missing.empty()) return;
  throw Error::Format(
      "merge: {} of {} trials are in none of the shards: numbers {}; the first is \"{}\"",
      missing.size(),
      wanted.size(),
      NumberList(missing),
      trials[missing.front()].label);
}

// The look at which the claims are decided or, if they are not, the last one whose trials are there.
struct Reached {
  size_t looks = 1;  // up to it
  size_t next = 0;   // the look that is needed to decide; 0: none
};

// Judges look after look, as Run does. Throws Error naming trials of a look that are missing, unless
// all of them are and there was a look before.
Reached FindLook(const Experiment& experiment,
                 const std::vector<Trial>& trials,
                 const std::vector<Look>& looks,
                 const FinishedTrials& finished) {
  const auto is_finished = [&](size_t i) { return finished.contains(i); };
  for (size_t count = 1;; ++count) {
    const std::vector<size_t> wanted = TrialsUpTo(looks, count);
    RequireAll(trials, wanted, finished);
    if (count == looks.size()) return {.looks = count};
    FinishedTrials of_look = finished;
    KeepOnly(wanted, of_look);
    if (AllDecided(JudgeTrials(experiment, looks[count - 1].settings, of_look))) {
      return {.looks = count};
    }
    const std::vector<size_t>& added = looks[count].added;
    if (std::none_of(added.begin(), added.end(), is_finished)) {
      return {.looks = count, .next = count + 1};
    }
  }
}

void Require(const std::error_code& status, const fs::path& path) {
  if (status) throw Error::Format("{}: cannot be written: {}", path.string(), status.message());
}

// Adds the trials that no journal in `out` holds to the journal of an unsharded run there. A copy takes
// its place at the end: it is synced once, and a loss of power before that leaves no torn lines.
void CopyTrials(const Experiment& experiment,
                const std::vector<Trial>& trials,
                const FinishedTrials& finished,
                const fs::path& out) {
  FinishedTrials already_there;
  AddFinishedTrials(experiment, trials, out, already_there);
  if (already_there.size() == finished.size()) return;
  const ShardOwner owner(out, 0, 1, /*take_over=*/false);
  const fs::path path = out / kJournalFolder / JournalName(0, 1);
  const fs::path copy = path.string() + ".merge";
  Remove(copy);
  std::error_code status;
  if (Exists(path)) fs::copy_file(path, copy, status);
  Require(status, copy);
  Journal journal(copy);
  for (const auto& [index, entry] : finished) {
    if (already_there.contains(index)) continue;
    journal.Write({index,
                   trials[index].label,
                   entry.commit,
                   entry.rows,
                   entry.build,
                   entry.processor,
                   entry.seconds,
                   entry.claims});
  }
  journal.Sync();
  fs::rename(copy, path, status);
  Require(status, path);
  Require(SyncNameOf(path), path);
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
  std::map<fs::path, fs::path> seen;  // without links, "." and ".."
  for (const fs::path& shard : shards) {
    std::error_code status;
    const fs::path real = fs::canonical(shard, status);
    if (status) continue;  // a missing one is named when it is read
    const auto [first, added] = seen.emplace(real, shard);
    if (added) continue;
    throw Error::Format("merge: {} and {} are the same directory; expected each shard once",
                        first->second.string(),
                        shard.string());
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
  const std::vector<Trial> trials = ListTrials(experiment, WithAllSeeds(settings));
  const std::vector<Look> looks = ListLooks(settings, trials);
  CheckDirectory(experiment, settings, out);
  FinishedTrials finished;
  const std::vector<DoubleTrial> doubles = Gather(experiment, trials, shards, finished);
  // Those of an earlier merge into `out`.
  AddFinishedTrials(experiment, trials, out, finished);
  const Reached reached = FindLook(experiment, trials, looks, finished);
  ran.allowed = CheckAlike(experiment, settings, finished, doubles, allow);
  KeepOnly(TrialsUpTo(looks, reached.looks), finished);
  MakeResultDirectory(out);
  const DirectoryLock lock = LockDirectory(out);
  ClaimDirectory(experiment, settings, out);
  CopyTrials(experiment, trials, finished, out);
  RunReport report;
  report.trials_total = finished.size();
  report.next_look = reached.next;
  Complete(experiment, looks[reached.looks - 1].settings, std::move(finished), out, ran, report);
  return report;
}

}  // namespace numsim::experiments
