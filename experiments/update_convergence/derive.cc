// The derived tables of `update-convergence`: the outcome of every rule, and the cheapest rule that
// keeps up with the baseline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "experiments/shared/special_values.h"
#include "experiments/update_convergence/update_convergence.h"
#include "numsim/base/error.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::update_convergence {
namespace {

using RunKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;

RunKey BaselineKey(const Run& run) {
  return {
      run.problem, run.optimiser, std::string(kBaselineFormat), std::string(kBaselineRule), run.lr};
}

RunKey MasterKey(const Run& run) {
  return {run.problem,
          run.optimiser,
          run.format,
          std::string(ToString(UpdateKind::kMasterFp32)),
          run.lr};
}

RunKey KeyOf(const Run& run) { return {run.problem, run.optimiser, run.format, run.rule, run.lr}; }

// The runs of one configuration and rule, by seed.
using Seeds = std::map<std::string, const Run*>;
using RunIndex = std::map<RunKey, Seeds>;

// Returns the index of the first recorded step at half-time or later.
size_t HalfTime(const Run& run) {
  size_t i = 0;
  while (run.step[i] < std::floor(run.step.back() / 2)) ++i;
  return i;
}

// Returns the number of steps until the loss first falls to `level`, interpolated linearly between
// recorded steps; infinite if it does not.
double StepsTo(const Run& run, double level) {
  for (size_t i = 0; i < run.loss.size(); ++i) {
    if (!(run.loss[i] <= level)) continue;
    if (i == 0) return 0;
    const double share = (run.loss[i - 1] - level) / (run.loss[i - 1] - run.loss[i]);
    return run.step[i - 1] + share * (run.step[i] - run.step[i - 1]);
  }
  return kInfinity;
}

// Compares a run with the baseline of the same seed.
struct Compared {
  double loss = kNaN, progress = kNaN, gap = kNaN, gap_half = kNaN, growth = kNaN;
  double gap_master = kNaN, gap_master_half = kNaN;
  double travel_half = kNaN, travel = kNaN, delay = kNaN;
  bool progressed = false;  // true if the baseline made progress
};

Compared Compare(const Run& run, const Run& baseline, const Run* master) {
  Compared c;
  const size_t half = HalfTime(run);
  const double start = baseline.loss.front(), end = baseline.loss.back();
  const double unit = start - end;
  c.loss = run.loss.back();
  c.travel_half = run.travel[half];
  c.travel = run.travel.back();
  c.progressed = unit > 0 && std::isfinite(unit);
  if (!c.progressed) return c;
  c.progress = (start - c.loss) / unit;
  c.gap = (c.loss - end) / unit;
  c.gap_half = (run.loss[half] - baseline.loss[half]) / unit;
  c.growth = c.gap - c.gap_half;
  if (master != nullptr && std::isfinite(master->loss.back())) {
    c.gap_master = (c.loss - master->loss.back()) / unit;
    c.gap_master_half = (run.loss[half] - master->loss[half]) / unit;
  }
  const double level = start - unit / 2;
  c.delay = StepsTo(run, level) / StepsTo(baseline, level);
  return c;
}

template <typename Member>
Estimate Mean(const std::vector<Compared>& seeds, const Member& member) {
  std::vector<double> values;
  values.reserve(seeds.size());
  for (const Compared& seed : seeds) values.push_back(seed.*member);
  return MeanOf(values);
}

double MeanOfRuns(const Seeds& seeds, double Run::*member) {
  std::vector<double> values;
  for (const auto& [seed, run] : seeds) values.push_back(run->*member);
  return MeanOf(values).value;
}

std::string WorstStatus(const Seeds& seeds) {
  std::string worst(ToString(RunStatus::kOk));
  for (const auto& [seed, run] : seeds) {
    if (run->status == worst || worst == ToString(RunStatus::kNonfinite)) continue;
    if (run->status != ToString(RunStatus::kOk)) worst = run->status;
  }
  return worst;
}

std::string Within(double gap_half, double gap, bool measured) {
  if (!measured || std::isnan(gap)) return "none";
  return gap_half <= kWithin && gap <= kWithin ? "yes" : "no";
}

std::string FallsBehind(const Estimate& gap,
                        const Estimate& growth,
                        const std::string& status,
                        bool measured) {
  if (!measured) return "none";
  if (status != ToString(RunStatus::kOk)) return "ended";
  const bool certain = std::isnan(growth.low) || growth.low > 0;
  return gap.value > kWithin && growth.value > kGrowth && certain ? "yes" : "no";
}

void AddFinal(const RunIndex& index, const Run& first, Table& table) {
  const Seeds& seeds = index.at(KeyOf(first));
  const auto baselines = index.find(BaselineKey(first));
  const auto masters = index.find(MasterKey(first));
  std::vector<Compared> compared;
  bool measured = true;
  for (const auto& [seed, run] : seeds) {
    if (baselines == index.end() || baselines->second.count(seed) == 0) return;
    const Run* master = nullptr;
    if (masters != index.end() && masters->second.count(seed) != 0) {
      master = masters->second.at(seed);
    }
    compared.push_back(Compare(*run, *baselines->second.at(seed), master));
    measured &= compared.back().progressed;
  }
  const Format format = ParseFormat(first.format);
  const std::string status = WorstStatus(seeds);
  const Estimate gap = Mean(compared, &Compared::gap);
  const Estimate gap_master = Mean(compared, &Compared::gap_master);
  const Estimate growth = Mean(compared, &Compared::growth);
  Row cells = {first.problem,
               first.optimiser,
               first.format,
               first.rule,
               first.lr,
               uint64_t{seeds.size()},
               BytesPerWeight(ParseUpdateRule(first.rule), format.spec)};
  for (const Estimate& e : {Mean(compared, &Compared::loss),
                            Mean(compared, &Compared::progress),
                            gap,
                            gap_master,
                            growth}) {
    for (const double value : {e.value, e.low, e.high}) cells.push_back(value);
  }
  for (const double value : {Mean(compared, &Compared::travel_half).value,
                             Mean(compared, &Compared::travel).value,
                             Mean(compared, &Compared::delay).value,
                             MeanOfRuns(seeds, &Run::moved_share),
                             MeanOfRuns(seeds, &Run::norm_ratio),
                             MeanOfRuns(seeds, &Run::projection_ratio)}) {
    cells.push_back(value);
  }
  cells.push_back(status);
  cells.push_back(Within(Mean(compared, &Compared::gap_half).value, gap.value, measured));
  cells.push_back(
      Within(Mean(compared, &Compared::gap_master_half).value, gap_master.value, measured));
  cells.push_back(FallsBehind(gap, growth, status, measured));
  table.rows.push_back(std::move(cells));
}

struct Choice {
  std::string rule = "none";
  double bytes = kNaN;
};

// Returns the rule of the cheapest of these rows whose `verdict` is yes, the first of several. The
// note's rule as printed is no candidate, because it trains at a different learning rate than
// requested.
Choice CheapestOf(const Table& final_table,
                  const std::vector<size_t>& rows,
                  std::string_view verdict) {
  Choice choice;
  for (const size_t r : rows) {
    if (final_table.Text(r, verdict) != "yes") continue;
    if (ParseUpdateRule(final_table.Text(r, "rule")).kind == UpdateKind::kNoteAsPrinted) continue;
    const double bytes = final_table.Number(r, "bytes");
    if (!(bytes >= choice.bytes)) choice = {final_table.Text(r, "rule"), bytes};
  }
  return choice;
}

void AddCheapest(const Table& final_table, Table& table) {
  std::vector<std::vector<std::string>> keys;
  std::map<std::vector<std::string>, std::vector<size_t>> rows;
  for (size_t r = 0; r < final_table.rows.size(); ++r) {
    std::vector<std::string> key;
    for (const char* const column : {"problem", "optimiser", "format", "lr"}) {
      key.push_back(final_table.Text(r, column));
    }
    if (key[2] == kBaselineFormat) continue;
    if (rows.count(key) == 0) keys.push_back(key);
    rows[key].push_back(r);
  }
  for (const std::vector<std::string>& key : keys) {
    Row cells(key.begin(), key.end());
    for (const char* const verdict : {"within_fp32", "within_master"}) {
      const Choice choice = CheapestOf(final_table, rows.at(key), verdict);
      cells.push_back(choice.rule);
      cells.push_back(choice.bytes);
    }
    table.rows.push_back(std::move(cells));
  }
}

// A running mean that leaves out NaN.
struct KnownMean {
  double sum = 0, count = 0;
  void Add(double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++count;
  }
  double Value() const { return count > 0 ? sum / count : kNaN; }
};

}  // namespace

std::vector<Run> RunsOf(const Table& losses) {
  std::vector<Run> runs;
  KnownMean moved, norm, projection;
  const auto finish = [&] {
    if (runs.empty()) return;
    runs.back().moved_share = moved.Value();
    runs.back().norm_ratio = norm.Value();
    runs.back().projection_ratio = projection.Value();
    moved = norm = projection = {};
  };
  for (size_t r = 0; r < losses.rows.size(); ++r) {
    const double step = losses.Number(r, "step");
    if (step == 0) {
      finish();
      Run run;
      run.problem = losses.Text(r, "problem");
      run.optimiser = losses.Text(r, "optimiser");
      run.format = losses.Text(r, "format");
      run.rule = losses.Text(r, "rule");
      run.lr = losses.Text(r, "lr");
      run.seed = losses.Text(r, "seed");
      runs.push_back(std::move(run));
    }
    if (runs.empty()) throw Error::Format("losses.csv: a run does not start with step 0");
    Run& run = runs.back();
    run.step.push_back(step);
    run.loss.push_back(losses.Number(r, "loss"));
    run.travel.push_back(losses.Number(r, "travel"));
    run.status = losses.Text(r, "status");
    moved.Add(losses.Number(r, "moved_share"));
    norm.Add(losses.Number(r, "norm_ratio"));
    projection.Add(losses.Number(r, "projection_ratio"));
  }
  finish();
  return runs;
}

void Derive(const Settings&, Tables& tables) {
  const std::vector<Run> runs = RunsOf(tables.at(std::string(kLossesTable)));
  RunIndex index;
  for (const Run& run : runs) index[KeyOf(run)][run.seed] = &run;
  Table& final_table = tables.at(std::string(kFinalTable));
  for (const Run& run : runs) {
    // Add one row per configuration and rule, at its first seed.
    if (index.at(KeyOf(run)).begin()->second == &run) AddFinal(index, run, final_table);
  }
  AddCheapest(final_table, tables.at(std::string(kCheapestTable)));
}

}  // namespace numsim::experiments::update_convergence
