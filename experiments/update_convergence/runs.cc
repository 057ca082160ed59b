// The runs of `update-convergence`, read from the table of losses, and their comparison with the
// baseline of the same seed: the derived table `runs`.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "experiments/shared/special_values.h"
#include "experiments/update_convergence/update_convergence.h"
#include "numsim/base/error.h"

namespace numsim::experiments::update_convergence {
namespace {

using RunKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
using RunIndex = std::map<RunKey, const Run*>;

RunKey KeyOf(const Run& run, std::string_view format, std::string_view rule) {
  return {run.problem, run.optimiser, std::string(format), std::string(rule), run.lr, run.seed};
}

// Returns the run of that key, or nullptr if there is none.
const Run* Find(const RunIndex& index, const RunKey& key) {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : found->second;
}

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

// A run in units of the baseline. All NaN if the baseline makes no progress.
struct Compared {
  double progress = kNaN, gap_half = kNaN, gap = kNaN;
  double gap_master_half = kNaN, gap_master = kNaN;
  double delay = kNaN, least_delay = kNaN;
};

Compared Compare(const Run& run, const Run& baseline, const Run* master) {
  Compared c;
  const size_t half = HalfTime(run);
  const double start = baseline.loss.front(), end = baseline.loss.back(), loss = run.loss.back();
  const double unit = start - end;
  if (!(unit > 0) || !std::isfinite(unit)) return c;
  c.progress = (start - loss) / unit;
  c.gap = (loss - end) / unit;
  c.gap_half = (run.loss[half] - baseline.loss[half]) / unit;
  if (master != nullptr && std::isfinite(master->loss.back())) {
    c.gap_master = (loss - master->loss.back()) / unit;
    c.gap_master_half = (run.loss[half] - master->loss[half]) / unit;
  }
  const double level = start - unit / 2, baseline_steps = StepsTo(baseline, level);
  c.delay = StepsTo(run, level) / baseline_steps;
  c.least_delay = std::min(c.delay, run.step.back() / baseline_steps);
  return c;
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

std::vector<Row> RunRows(const Table& losses) {
  std::vector<Row> rows;
  const std::vector<Run> runs = RunsOf(losses);
  RunIndex index;
  for (const Run& run : runs) index[KeyOf(run, run.format, run.rule)] = &run;
  for (const Run& run : runs) {
    const Run* const baseline = Find(index, KeyOf(run, kBaselineFormat, kBaselineRule));
    if (baseline == nullptr) continue;
    const Run* const master =
        Find(index, KeyOf(run, run.format, ToString(UpdateKind::kMasterFp32)));
    const Compared c = Compare(run, *baseline, master);
    rows.push_back({run.problem,       run.optimiser,   run.format,
                    run.rule,          run.lr,          run.seed,
                    run.status,        run.loss.back(), c.progress,
                    c.gap_half,        c.gap,           c.gap - c.gap_half,
                    c.gap_master_half, c.gap_master,    run.travel[HalfTime(run)],
                    run.travel.back(), c.delay,         c.least_delay,
                    run.moved_share,   run.norm_ratio,  run.projection_ratio});
  }
  return rows;
}

}  // namespace numsim::experiments::update_convergence
