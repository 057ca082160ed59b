#include "experiments/runner/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "experiments/runner/completion.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/seeds.h"
#include "experiments/runner/settings.h"
#include "numsim/base/error.h"

namespace numsim::experiments {
namespace {

// Returns the place of a column in the rows of a table.
size_t PlaceOf(const Experiment& experiment, const std::string& table, const char* column) {
  const auto spec = std::ranges::find(experiment.tables, table, &TableSpec::name);
  NUMSIM_CHECK(spec != experiment.tables.end(), "{}", table);
  const auto found = std::ranges::find(spec->columns, column, &Column::name);
  NUMSIM_CHECK(found != spec->columns.end(), "{}: {}", table, column);
  return static_cast<size_t>(found - spec->columns.begin());
}

// Adds the losses of the finished trials of a rate.
void AddLosses(const Experiment& experiment,
               const RunOptions& options,
               const std::string& rate,
               std::vector<RateLoss>& losses) {
  const std::vector<Trial> trials = ListTrials(experiment, options.settings);
  FinishedTrials finished;
  AddFinishedTrials(experiment, trials, options.out, finished);
  const RateTuning& tuning = experiment.tuning;
  const size_t status = PlaceOf(experiment, tuning.table, "status");
  const size_t loss = PlaceOf(experiment, tuning.table, "valid_loss");
  for (const auto& [index, entry] : finished) {
    const std::string arm = tuning.arm(trials[index]);
    if (arm.empty()) continue;  // it trains nothing
    const Row& row = entry.rows.at(tuning.table).front();
    const bool ended = row.at(status).Text() == "finished";
    losses.push_back(
        {.arm = arm,
         .rate = rate,
         .seed = trials[index].seed,
         .loss = ended ? row.at(loss).Number() : std::numeric_limits<double>::infinity()});
  }
}

void CheckGrid(const std::vector<std::string>& grid) {
  CheckDistinct("rate-grid", grid);
  if (grid.size() >= 3) return;
  throw Error::Format(
      "--rate-grid: has {} rates; expected at least 3, since a rate at an end of the grid is not judged",
      grid.size());
}

}  // namespace

TuningReport Tune(const Experiment& experiment,
                  RunOptions options,
                  const std::vector<std::string>& grid) {
  if (experiment.tuning.table.empty()) {
    throw Error::Format("{}: does not choose learning rates", experiment.name);
  }
  CheckGrid(grid);
  Experiment tuned = experiment;
  tuned.name = fmt::format("tuning of {}", experiment.name);
  options.settings.seed = kFirstTuningSeed;
  options.settings.max_seeds = 0;
  options.settings.options.erase(std::string(kRatesOption));
  options.measure_only = true;
  const std::filesystem::path out = options.out;
  TuningReport report;
  std::vector<RateLoss> losses;
  for (const std::string& rate : grid) {
    for (const std::string& option : experiment.tuning.options) {
      options.settings.options.at(option) = rate;
    }
    options.out = out / ("rate-" + rate);
    report.run = Run(tuned, options);
    if (report.run.interrupted || report.run.trials_missing > 0) return report;
    AddLosses(tuned, options, rate, losses);
  }
  // By arm, then by rate, then by seed.
  std::vector<RateLoss> sorted;
  for (const ArmRate& arm : ChooseRates(losses)) {
    std::ranges::copy_if(losses, std::back_inserter(sorted), [&](const RateLoss& loss) {
      return loss.arm == arm.arm;
    });
  }
  WriteRates(out / kRatesFile, sorted);
  report.rates = ChooseRates(sorted);
  return report;
}

std::string TuningText(const TuningReport& report) {
  std::string text;
  for (const ArmRate& rate : report.rates) {
    text += fmt::format(
        "{}: {}{}\n", rate.arm, rate.rate, rate.at_end ? fmt::format(", {}", kAtEnd) : "");
  }
  return text;
}

}  // namespace numsim::experiments
