// The derived table of `fp8-outliers`: every arm over its seeds.
#include <algorithm>
#include <cmath>

#include "experiments/core/claim.h"
#include "experiments/core/frame.h"
#include "experiments/fp8_outliers/fp8_outliers.h"

namespace numsim::experiments::fp8_outliers {
namespace {

double MeanOverBad(const Frame& arm, const char* column) {
  return arm.Where([](const Frame& run) { return run.Number("bad_steps") > 0; }).Mean(column);
}

double BadSeeds(const Frame& arm) {
  const Frame bad = arm.Where([](const Frame& run) { return run.Number("bad_steps") > 0; });
  return static_cast<double>(bad.Size());
}

}  // namespace

void Derive(const Settings& /*settings*/, Tables& tables) {
  const Frame runs = tables.at(std::string(kRunsTable));
  std::vector<Row>& rows = tables.at(std::string(kArmsTable)).rows;
  for (const Frame& plant : runs.By({"plant", "lr"})) {
    const OutcomeTable losses =
        OutcomesOf(plant, {"recipe"}, [](const Frame& run) { return run.Number("valid_loss"); });
    const bool reference = !plant.Where("recipe", std::string("bf16")).Empty();
    for (const Frame& arm : plant.By({"recipe"})) {
      const Frame finished = arm.Where("status", std::string("finished"));
      Row row = {arm.Text("plant"),
                 arm.Text("recipe"),
                 arm.Text("lr"),
                 arm.Size(),
                 arm.Size() - finished.Size()};
      const Estimate gap =
          reference ? GapOf(losses, arm.Text("recipe"), "bf16") : MeanOf(SeedValues());
      Append({MeanOf(finished.OverSeeds("valid_loss")), gap}, row);
      for (const char* column : {"saturated_steps", "flushed_steps", "bad_steps"}) {
        row.emplace_back(arm.Mean(column));
      }
      row.emplace_back(BadSeeds(arm));
      row.emplace_back(MeanOverBad(arm, "last_bad"));
      row.emplace_back(arm.Mean("worst_excess"));
      rows.push_back(std::move(row));
    }
  }
}

}  // namespace numsim::experiments::fp8_outliers
