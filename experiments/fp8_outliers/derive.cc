// The derived table of `fp8-outliers`: every arm over its seeds.
#include <algorithm>
#include <cmath>
#include <string>

#include "experiments/claims/claim.h"
#include "experiments/claims/frame.h"
#include "experiments/fp8_outliers/fp8_outliers.h"

namespace numsim::experiments::fp8_outliers {
namespace {

Frame Finished(const Frame& arm) { return arm.Where("status", std::string("finished")); }

// Returns PairedGap, or NaN if no seed has both.
Estimate GapOrNone(const SeedValues& values, const SeedValues& baseline) {
  const bool shared = std::ranges::any_of(
      values, [&](const auto& value) { return baseline.contains(value.first); });
  return shared ? PairedGap(values, baseline) : MeanOf(SeedValues());
}

// Returns whether the arm ends as bf16, within the margin of a final loss.
std::string OutcomeOf(const Frame& arm, size_t diverged, const Estimate& gap) {
  if (diverged > 0) return "fails";
  const double margin = LossMargin("nats").At(arm.Mean("parameters"));
  if (gap.high < margin) return "survives";
  return gap.low > margin ? "fails" : "undecided";
}

}  // namespace

std::vector<Row> Arms(const study::Results& results) {
  const Frame runs = results.Of(kRunsTable);
  std::vector<Row> rows;
  for (const Frame& plant : runs.By({"plant", "lr"})) {
    const SeedValues bf16 =
        Finished(plant.Where("recipe", std::string("bf16"))).OverSeeds("valid_loss");
    for (const Frame& arm : plant.By({"recipe"})) {
      const Frame finished = Finished(arm);
      const Frame bad = arm.Where([](const Frame& run) { return run.Number("bad_steps") > 0; });
      const SeedValues losses = finished.OverSeeds("valid_loss");
      const size_t diverged = arm.Size() - finished.Size();
      const Estimate gap = GapOrNone(losses, bf16);
      Row row = {arm.Text("plant"), arm.Text("recipe"), arm.Text("lr"), arm.Size(), diverged};
      Append({MeanOf(losses), gap}, row);
      row.emplace_back(OutcomeOf(arm, diverged, gap));
      for (const char* column : {"saturated_steps", "flushed_steps", "bad_steps"}) {
        row.emplace_back(arm.Mean(column));
      }
      row.emplace_back(bad.Size());
      row.emplace_back(bad.Mean("last_bad"));
      row.emplace_back(arm.Mean("worst_excess"));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace numsim::experiments::fp8_outliers
