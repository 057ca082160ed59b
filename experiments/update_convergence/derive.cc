// The derived tables of `update-convergence` over seeds: the outcome of every rule, and the cheapest
// rule that keeps up with the baseline.
#include <cmath>
#include <string_view>

#include "experiments/claims/frame.h"
#include "experiments/shared/special_values.h"
#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

Estimate MeanOfColumn(const Frame& seeds, std::string_view column) {
  return MeanOf(seeds.Numbers(column));
}

std::string WorstStatus(const Frame& seeds) {
  for (const RunStatus status : {RunStatus::kNonfinite, RunStatus::kDiverged}) {
    if (!seeds.Where("status", ToString(status)).Empty()) return std::string(ToString(status));
  }
  return std::string(ToString(RunStatus::kOk));
}

// Returns true if the baseline made progress under every seed.
bool BaselineLearned(const Frame& seeds) {
  return seeds.Where([](const Frame& row) { return std::isnan(row.Number("progress")); }).Empty();
}

std::string Within(const Frame& seeds, std::string_view gap_half, std::string_view gap) {
  const double end = MeanOfColumn(seeds, gap).value;
  if (!BaselineLearned(seeds) || std::isnan(end)) return "none";
  return MeanOfColumn(seeds, gap_half).value <= kWithin && end <= kWithin ? "yes" : "no";
}

std::string FallsBehind(const Frame& seeds) {
  if (!BaselineLearned(seeds)) return "none";
  if (WorstStatus(seeds) != ToString(RunStatus::kOk)) return "ended";
  const Estimate growth = MeanOfColumn(seeds, "gap_growth");
  const bool certain = std::isnan(growth.low) || growth.low > 0;
  const bool large = MeanOfColumn(seeds, "gap").value > kWithin && growth.value > kGrowth;
  return large && certain ? "yes" : "no";
}

Row FinalRow(const Frame& seeds) {
  Row cells;
  for (const char* const key : {"problem", "optimiser", "format", "rule", "lr"}) {
    cells.push_back(seeds.Text(key));
  }
  cells.push_back(uint64_t{seeds.Size()});
  cells.push_back(
      BytesPerWeight(ParseUpdateRule(seeds.Text("rule")), ParseFormat(seeds.Text("format")).spec));
  for (const char* const column : {"loss", "progress", "gap", "gap_master", "gap_growth"}) {
    const Estimate estimate = MeanOfColumn(seeds, column);
    for (const double value : {estimate.value, estimate.low, estimate.high}) cells.push_back(value);
  }
  for (const char* const column :
       {"travel_half", "travel", "delay", "moved_share", "norm_ratio", "projection_ratio"}) {
    cells.push_back(MeanOfColumn(seeds, column).value);
  }
  cells.push_back(WorstStatus(seeds));
  cells.push_back(Within(seeds, "gap_half", "gap"));
  cells.push_back(Within(seeds, "gap_master_half", "gap_master"));
  cells.push_back(FallsBehind(seeds));
  return cells;
}

struct Choice {
  std::string rule = "none";
  double bytes = kNaN;
};

// Returns the rule of the cheapest of these rows whose `column` is yes, the first of several. The
// note's rule as printed is no candidate, because it trains at a different learning rate than
// requested.
Choice CheapestOf(const Frame& rules, std::string_view column) {
  Choice choice;
  rules.Where(column, "yes").ForEach([&](const Frame& row) {
    if (ParseUpdateRule(row.Text("rule")).kind == UpdateKind::kNoteAsPrinted) return;
    const double bytes = row.Number("bytes");
    if (!(bytes >= choice.bytes)) choice = {row.Text("rule"), bytes};
  });
  return choice;
}

Row CheapestRow(const Frame& rules) {
  Row cells;
  for (const char* const key : {"problem", "optimiser", "format", "lr"}) {
    cells.push_back(rules.Text(key));
  }
  for (const char* const column : {"within_fp32", "within_master"}) {
    const Choice choice = CheapestOf(rules, column);
    cells.push_back(choice.rule);
    cells.push_back(choice.bytes);
  }
  return cells;
}

}  // namespace

std::vector<Row> FinalRows(const study::Results& results) {
  std::vector<Row> rows;
  for (const Frame& seeds :
       results.Of("runs").By({"problem", "optimiser", "format", "rule", "lr"})) {
    rows.push_back(FinalRow(seeds));
  }
  return rows;
}

std::vector<Row> CheapestRows(const study::Results& results) {
  std::vector<Row> rows;
  const Frame small = results.Of("final").Where(
      [](const Frame& row) { return row.Text("format") != kBaselineFormat; });
  for (const Frame& rules : small.By({"problem", "optimiser", "format", "lr"})) {
    rows.push_back(CheapestRow(rules));
  }
  return rows;
}

}  // namespace numsim::experiments::update_convergence
