// The derived table of `fp8-interventions`: outcomes over seeds.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/fp8_interventions/fp8_interventions.h"

namespace numsim::experiments::fp8_interventions {
namespace {

Frame Finished(const Frame& rows) { return rows.Where("status", "finished"); }

// Returns the gap to a baseline, paired by seed; NaN if the baseline diverged.
Estimate GapTo(const Frame& baseline, const Frame& rows) {
  if (Finished(baseline).Size() < baseline.Size())
    return {std::nan(""), std::nan(""), std::nan("")};
  return PairedGap(rows.OverSeeds("valid_loss"), baseline.OverSeeds("valid_loss"));
}

Row OutcomeRow(const Frame& final_rows, const Frame& rows) {
  const std::string bf16 = kBaseline.Text(), intervention = rows.Text("intervention");
  const Estimate loss = MeanOf(rows.OverSeeds("valid_loss"));
  const Estimate gap = GapTo(Select(final_rows, intervention, bf16), rows);
  const Estimate gap_none = GapTo(Select(final_rows, Intervention{}.Text(), bf16), rows);
  const Frame judged =
      rows.Where([](const Frame& row) { return std::isfinite(row.Number("zero_shot")); });
  return {intervention,
          rows.Text("format"),
          rows.Size(),
          rows.Size() - Finished(rows).Size(),
          Finished(rows).Where([](const Frame& row) { return Failed(row); }).Size(),
          loss.value,
          loss.low,
          loss.high,
          gap.value,
          gap.low,
          gap.high,
          gap_none.value,
          gap_none.low,
          gap_none.high,
          judged.Mean("zero_shot")};
}

}  // namespace

Frame Select(const Frame& frame, const std::string& intervention, const std::string& format) {
  return frame.Where("intervention", intervention).Where("format", format);
}

Frame AfterLastBlock(const Frame& features) {
  double last = 0;
  for (const double block : features.Numbers("block")) last = std::max(last, block);
  return features.Where("block", last);
}

Frame LastRecords(const Frame& features) {
  const auto key = [](const Frame& row) {
    return row.Text("intervention") + " " + row.Text("format") + " " + row.Text("seed");
  };
  std::map<std::string, double> last;
  features.ForEach([&](const Frame& row) {
    double& step = last[key(row)];
    step = std::max(step, row.Number("step"));
  });
  return features.Where([&](const Frame& row) { return row.Number("step") == last.at(key(row)); });
}

bool Failed(const Frame& row) {
  return row.Text("status") != "finished" ||
         !(row.Number("valid_loss") <= (1 - kCollapsed) * row.Number("chance_loss"));
}

void Derive(const Settings&, Tables& tables) {
  const Frame final_rows = tables.at(std::string(kFinalTable));
  for (const Frame& rows : final_rows.By({"intervention", "format"})) {
    tables.at(std::string(kOutcomesTable)).rows.push_back(OutcomeRow(final_rows, rows));
  }
}

}  // namespace numsim::experiments::fp8_interventions
