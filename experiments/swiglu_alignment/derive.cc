// The derived table of `swiglu-alignment`: means over seeds.
#include <cmath>
#include <functional>

#include "experiments/claims/frame.h"
#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

// Returns the mean over seeds of a value of each run; NaN without runs.
Estimate OverRuns(const Frame& runs, const std::function<double(const Frame&)>& value) {
  SeedValues values;
  runs.ForEach([&](const Frame& run) { values[run.Text("seed")] = value(run); });
  return MeanOf(values);
}

Row ArmRowOf(const Frame& arm) {
  const auto column = [](const char* name) {
    return [name](const Frame& run) { return run.Number(name); };
  };
  const Frame finished = arm.Where("status", "finished");
  Row row = CellsOf(ArmOf(arm));
  row.emplace_back(arm.Size());
  row.emplace_back(1 - static_cast<double>(finished.Size()) / static_cast<double>(arm.Size()));
  Append({OverRuns(finished, column("valid_loss")),
          OverRuns(finished, [](const Frame& run) { return std::fabs(run.Number("cos_early")); }),
          OverRuns(finished, [](const Frame& run) { return std::fabs(run.Number("cos_late")); }),
          OverRuns(finished, column("others_late")),
          OverRuns(finished,
                   [](const Frame& run) { return run.Number("w2_late") / run.Number("w2_early"); }),
          OverRuns(finished, column("above_one")),
          OverRuns(finished, column("largest_late")),
          OverRuns(finished, column("kurtosis_late"))},
         row);
  return row;
}

}  // namespace

void Derive(const Settings&, Tables& tables) {
  const Frame runs = tables.at(std::string(kRunsTable));
  for (const Frame& arm : runs.By(kArmKey)) {
    tables.at(std::string(kArmsTable)).rows.push_back(ArmRowOf(arm));
  }
}

}  // namespace numsim::experiments::swiglu_alignment
