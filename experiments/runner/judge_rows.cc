#include <fmt/format.h>

#include "experiments/runner/completion.h"
#include "experiments/runner/given_rows.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments {

RunReport JudgeRows(const Experiment& experiment,
                    Settings settings,
                    const std::vector<RowsArgument>& files,
                    const std::filesystem::path& out,
                    const std::vector<std::string>& command) {
  const Command ran{.arguments = command};
  FinishedTrials finished = ReadRows(experiment, files, settings);
  CheckJudgeable(experiment, settings, finished);
  CheckDirectory(experiment, settings, out);
  MakeResultDirectory(out);
  const DirectoryLock lock = LockDirectory(out);
  CheckDirectory(experiment, settings, out);
  RemoveOutputs(experiment, out);
  WriteSettings(out / kSettingsFile, {experiment.name, settings});
  RunReport report;
  report.trials_total = finished.size();
  Complete(experiment, settings, std::move(finished), out, ran, report);
  return report;
}

}  // namespace numsim::experiments
