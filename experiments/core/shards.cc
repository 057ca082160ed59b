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

// The settings that every shard has. Throws Error naming the first difference.
Settings CommonSettings(const Experiment& experiment, const std::vector<fs::path>& shards) {
  if (shards.empty()) throw Error("merge: expected at least one directory of a shard");
  StoredSettings common;
  for (const fs::path& shard : shards) {
    const StoredSettings stored = ReadSettings(shard / kSettingsFile);
    if (stored.experiment != experiment.name) {
      throw Error::Format("{}: holds results of {}, expected {}",
                          shard.string(),
                          stored.experiment,
                          experiment.name);
    }
    if (&shard == &shards.front()) common = stored;
    const std::string difference =
        FirstDifference(common, shards.front().string(), stored, shard.string());
    if (!difference.empty()) {
      throw Error::Format("merge: shards of different settings: {}", difference);
    }
  }
  return common.settings;
}

void RequireAll(const std::vector<Point>& points, const FinishedPoints& finished) {
  if (finished.size() == points.size()) return;
  size_t missing = 0;
  while (finished.contains(missing)) ++missing;
  throw Error::Format("merge: {} of {} points are in none of the shards, the first is \"{}\"",
                      points.size() - finished.size(),
                      points.size(),
                      points[missing].label);
}

// Adds those points to the journal of an unsharded run in `out` that its journals do not hold.
void CopyPoints(const Experiment& experiment,
                const std::vector<Point>& points,
                const FinishedPoints& finished,
                const fs::path& out) {
  FinishedPoints already_there;
  AddFinishedPoints(experiment, points, out, already_there);
  if (already_there.size() == finished.size()) return;
  Journal journal(out / kJournalFolder / JournalName(0, 1));
  for (const auto& [index, entry] : finished) {
    if (already_there.contains(index)) continue;
    journal.Append({index, points[index].label, entry.commit, entry.rows});
  }
}

}  // namespace

RunReport Merge(const Experiment& experiment,
                const std::vector<fs::path>& shards,
                const fs::path& out,
                const std::vector<std::string>& arguments) {
  const Command command{.arguments = arguments};
  const Settings settings = CommonSettings(experiment, shards);
  const std::vector<Point> points = ListPoints(experiment, settings);
  CheckDirectory(experiment, settings, out);
  FinishedPoints finished;
  for (const fs::path& shard : shards) AddFinishedPoints(experiment, points, shard, finished);
  AddFinishedPoints(experiment, points, out, finished);
  RequireAll(points, finished);
  MakeResultDirectory(out);
  const DirectoryLock lock(out / kJournalFolder);
  ClaimDirectory(experiment, settings, out);
  CopyPoints(experiment, points, finished, out);
  RunReport report;
  report.points_total = points.size();
  Complete(experiment, settings, finished, out, command, report);
  return report;
}

}  // namespace numsim::experiments
