// Definition of the experiment `noise-floor`: what study.toml does not say.
#include "experiments/noise_floor/noise_floor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/claims/claim.h"
#include "experiments/claims/student_t.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/training.h"
#include "experiments/study/study_file.h"
#include "numsim/base/error.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments {
namespace noise_floor {
namespace {

using namespace study;

constexpr std::string_view kNone = "none", kUlp = "ulp@";
constexpr int64_t kMostDraws = 1000;

// ---- arms

// Returns the choice of ulp@STEP/DRAW.
Choice Nudge(const std::string& text) {
  const size_t slash = text.find('/');
  const auto whole = [](std::string_view digits) {
    return !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  };
  const std::string_view given = text;
  if (!given.starts_with(kUlp) || slash == text.npos ||
      !whole(given.substr(kUlp.size(), slash - kUlp.size())) || !whole(given.substr(slash + 1))) {
    throw Error("is neither a name of the list nor ulp@STEP/DRAW");
  }
  return {text,
          {"stress.nudge_step=" + text.substr(kUlp.size(), slash - kUlp.size()),
           "stress.nudge_draw=" + text.substr(slash + 1)}};
}

// Returns the changes of a run: none, those by one ulp, other arithmetic.
std::vector<std::string> Changes(const Study& study, const Settings& settings) {
  std::vector<std::string> changes = {std::string(kNone)};
  const int64_t draws = settings.GetInteger("draws", 1, kMostDraws);
  const int64_t last = settings.GetInteger("steps", 1, kMostSteps) - 1;
  for (const int64_t step : settings.GetIntegers("nudge-steps", 0, last)) {
    for (int64_t draw = 1; draw <= draws; ++draw) {
      changes.push_back(fmt::format("{}{}/{}", kUlp, step, draw));
    }
  }
  for (const std::string& other : ValuesOf(study.axes.back(), settings)) {
    if (other != kNone) changes.push_back(other);
  }
  return changes;
}

std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  const std::vector<std::string> changes = Changes(study, settings);
  std::vector<Arm> arms;
  for (const std::string& size : ValuesOf(study.axes[0], settings)) {
    for (const std::string& lr : ValuesOf(study.axes[1], settings)) {
      for (const std::string& change : changes) arms.push_back({size, lr, change});
    }
  }
  return arms;
}

double Cost(const TrainConfig& config) {
  return CostPerToken(config.model) * static_cast<double>(config.train.steps);
}

// ---- tables

Frame Baselines(const Frame& runs) { return runs.Where("change", std::string(kNone)); }

// The rows of a model by kind of change, in the order of their first rows.
std::vector<std::pair<std::string, Frame>> ByKind(const Frame& runs) {
  std::vector<std::pair<std::string, Frame>> kinds;
  for (const std::string& change : runs.Distinct("change")) {
    const std::string kind = KindOf(change);
    if (kind == kNone || (!kinds.empty() && kinds.back().first == kind)) continue;
    kinds.emplace_back(
        kind, runs.Where([&](const Frame& row) { return KindOf(row.Text("change")) == kind; }));
  }
  return kinds;
}

// The differences of a kind of change at the end of the trainings.
struct Differences {
  std::vector<double> all;
  std::map<std::string, std::vector<double>> of_seed;
  int lost = 0;
};

Differences DifferencesOf(const Frame& runs, const SeedValues& baseline) {
  Differences found;
  runs.ForEach([&](const Frame& run) {
    const std::string seed = run.Text("seed");
    const double difference = run.Number("valid_loss") - baseline.at(seed);
    if (!std::isfinite(difference)) {
      ++found.lost;
      return;
    }
    found.all.push_back(difference);
    found.of_seed[seed].push_back(difference);
  });
  return found;
}

Moments MomentsOf(const std::vector<double>& values) {
  Moments moments;
  for (const double x : values) moments.Add(x);
  return moments;
}

// Returns the standard deviation; NaN for fewer than two values.
double Deviation(const std::vector<double>& values) {
  return std::sqrt(MomentsOf(values).Variance());
}

// A record of the spread of training losses.
struct Spread {
  double step = 0;
  int pairs = 0;
  double rms = 0;
};

std::vector<Spread> SpreadOf(const Frame& curves, const Frame& baselines) {
  std::vector<Spread> spread;
  for (const Frame& at : curves.By({"step"})) {
    const double step = at.Number("step");
    const SeedValues baseline = baselines.Where("step", step).OverSeeds("loss");
    double squares = 0;
    int pairs = 0;
    at.ForEach([&](const Frame& row) {
      const auto found = baseline.find(row.Text("seed"));
      const double difference = found == baseline.end() ? NAN : row.Number("loss") - found->second;
      if (!std::isfinite(difference)) return;
      squares += difference * difference;
      ++pairs;
    });
    if (pairs > 0) spread.push_back({step, pairs, std::sqrt(squares / pairs)});
  }
  return spread;
}

// Returns the first step at which the spread is half of its mean over the last quarter of the records.
double PartedAt(const std::vector<Spread>& spread) {
  double last = 0;
  const size_t begin = spread.size() - spread.size() / 4;
  for (size_t i = begin; i < spread.size(); ++i) last += spread[i].rms;
  const double half = last / static_cast<double>(spread.size() - begin) / 2;
  for (const Spread& one : spread) {
    if (one.rms >= half && one.rms > 0) return one.step;
  }
  return NAN;
}

Row FloorRow(const Frame& runs, const Frame& baselines, const Frame& curves, const Frame& without) {
  const SeedValues baseline = baselines.OverSeeds("valid_loss");
  const Differences differences = DifferencesOf(runs, baseline);
  SeedValues means;
  for (const auto& [seed, values] : differences.of_seed) means[seed] = MomentsOf(values).Mean();
  std::vector<double> magnitudes, losses;
  for (const double x : differences.all) magnitudes.push_back(std::fabs(x));
  for (const auto& [seed, loss] : baseline) losses.push_back(loss);
  const auto quantile = [&](double q) {
    return magnitudes.empty() ? NAN : Quantile(magnitudes, q);
  };
  const double deviation = Deviation(differences.all);
  Row row = {baseline.size(), differences.all.size(), differences.lost};
  Append({MeanOf(means)}, row);
  for (const double x : {deviation,
                         quantile(0.5),
                         quantile(0.95),
                         quantile(1),
                         PartedAt(SpreadOf(curves, without)),
                         Deviation(losses),
                         CarriedMargin(deviation, 5),
                         CarriedMargin(deviation, 10)}) {
    row.emplace_back(x);
  }
  return row;
}

// Calls use(kind, its runs, the baselines' runs, its curves, the baselines' curves) for each kind of
// change of each size and learning rate.
template <typename Use>
void ForEachKind(const Results& results, const Use& use) {
  const Frame all_curves = results.Of("curves");
  for (const Frame& model : results.Of("runs").By({"size", "lr"})) {
    const Frame curves = all_curves.Where("size", model.Text("size")).Where("lr", model.Text("lr"));
    const auto of_curves = ByKind(curves);
    size_t i = 0;
    for (const auto& [kind, runs] : ByKind(model)) {
      use(kind, runs, Baselines(model), of_curves.at(i++).second, Baselines(curves));
    }
  }
}

std::vector<Row> FloorRows(const Results& results) {
  std::vector<Row> rows;
  ForEachKind(results,
              [&](const std::string& kind,
                  const Frame& runs,
                  const Frame& baselines,
                  const Frame& curves,
                  const Frame& without) {
                Row row = {runs.Text("size"), runs.Number("lr"), kind, runs.Number("parameters")};
                for (Cell& cell : FloorRow(runs, baselines, curves, without))
                  row.push_back(std::move(cell));
                rows.push_back(std::move(row));
              });
  return rows;
}

std::string ModelText(const Frame& rows) {
  return fmt::format("{}, rate {}", rows.Text("size"), rows.Text("lr"));
}

std::vector<Row> SpreadRows(const Results& results) {
  std::vector<Row> rows;
  ForEachKind(results,
              [&](const std::string& kind,
                  const Frame& runs,
                  const Frame&,
                  const Frame& curves,
                  const Frame& without) {
                for (const Spread& one : SpreadOf(curves, without)) {
                  rows.push_back({ModelText(runs), kind, one.step, one.pairs, one.rms});
                }
              });
  return rows;
}

// ---- figures

// The records at which trainings have parted: a logarithm has no 0.
Frame Apart(const Results&, const Frame& spread) {
  return spread.Where([](const Frame& row) { return row.Number("rms") > 0; });
}

// The share of the pairs whose losses differ by more than x at the end, and numsim's margin.
Figure DrawDifferences(const Results& results) {
  Figure figure{.name = "noise-floor-final",
                .title = "Difference of validation losses at the end",
                .columns = 2,
                .source_csv = "runs.csv"};
  for (const Frame& model : results.Of("runs").By({"size", "lr"})) {
    Panel& panel = figure.panels.emplace_back();
    panel.title = ModelText(model);
    panel.x = {.label = "|difference|, nats per token", .log10 = true};
    panel.y = {.label = "share of the pairs that differ by more", .low = 0, .high = 1};
    const SeedValues baseline = Baselines(model).OverSeeds("valid_loss");
    int style = 0;
    for (const auto& [kind, runs] : ByKind(model)) {
      Series series{.label = kind, .style = style++, .markers = false};
      std::vector<double> magnitudes;
      for (const double x : DifferencesOf(runs, baseline).all) magnitudes.push_back(std::fabs(x));
      std::ranges::sort(magnitudes);
      for (size_t i = 0; i < magnitudes.size(); ++i) {
        series.x.push_back(magnitudes[i]);
        series.y.push_back(1 - static_cast<double>(i + 1) / static_cast<double>(magnitudes.size()));
      }
      panel.series.push_back(std::move(series));
    }
    const double margin = LossMargin("nats per token").At(model.Number("parameters"));
    panel.series.push_back({.label = "margin of numsim's claims",
                            .style = style,
                            .dashed = true,
                            .markers = false,
                            .x = {margin, margin},
                            .y = {0, 1}});
  }
  return figure;
}

Functions OwnFunctions() {
  return {.choices = {{"nudge", Nudge}},
          .tables = {{"floor", FloorRows}, {"spread", SpreadRows}},
          .rows = {{"apart", Apart}},
          .figures = {{"differences", DrawDifferences}}};
}

}  // namespace

std::string KindOf(const std::string& change) { return change.substr(0, change.find('/')); }

double CarriedMargin(double deviation, int seeds) {
  const int freedom = seeds - 1;
  // At mean 0 the interval stays within the margins on both sides with 0.8 if on each with 0.9.
  return (StudentQuantile(0.95, freedom) + StudentQuantile(0.9, freedom)) * deviation /
         std::sqrt(seeds);
}

}  // namespace noise_floor

study::Study NoiseFloorStudy() {
  using namespace noise_floor;
  Study study = ReadStudy(StudyText("noise_floor"), "noise_floor/study.toml", OwnFunctions());
  study.arms = ArmsOf;
  study.cost = Cost;
  return study;
}

Experiment NoiseFloor() { return study::MakeExperiment(NoiseFloorStudy()); }

}  // namespace numsim::experiments
