#include "experiments/sign_mean/sign_mean.h"

#include <fmt/format.h>

#include <cmath>

#include "experiments/claims/frame.h"
#include "experiments/runner/settings.h"
#include "experiments/shared/log_slope.h"
#include "numsim/random/streams.h"

namespace numsim::experiments {
namespace {

constexpr int kMostSigns = 1 << 20;

std::vector<Trial> Trials(const Settings& settings) {
  std::vector<Trial> trials;
  CheckDistinct("k", settings.GetList("k"));
  settings.GetInteger("draws", 1, 1 << 20);
  for (const int64_t k : settings.GetIntegers("k", 1, kMostSigns)) {
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back({.label = fmt::format("k={} seed={}", k, seed),
                        .seed = seed,
                        .parameters = {{"k", fmt::format("{}", k)}},
                        .cost = static_cast<double>(k)});
    }
  }
  return trials;
}

// Returns the root mean square of the means of k signs, over --draws draws.
Rows Measure(const Settings& settings, const Trial& trial) {
  const int64_t draws = settings.GetInteger("draws", 1, 1 << 20);
  const int64_t k = std::stoll(trial.parameters.at("k"));
  double squares = 0;
  for (int64_t draw = 0; draw < draws; ++draw) {
    int64_t sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const RandomStream stream{trial.seed, static_cast<uint64_t>(k)};
      sum += RandomBits(stream, static_cast<uint64_t>(draw * k + i), 1) == 0 ? -1 : 1;
    }
    const double mean = static_cast<double>(sum) / static_cast<double>(k);
    squares += mean * mean;
  }
  Rows rows;
  rows["means"].push_back({k, trial.seed, std::sqrt(squares / static_cast<double>(draws))});
  return rows;
}

void Derive(const Settings&, Tables& tables) {
  for (const Frame& k : Frame(tables.at("means")).By({"k"})) {
    tables.at("by_k").rows.push_back({k.Text("k"), k.Mean("mean")});
  }
}

std::vector<Figure> Figures(const Settings&, const Tables& tables) {
  Series series = Line(tables.at("means"), "k", "mean");
  series.label = "measured";
  series.markers = true;
  Panel panel;
  panel.x = {.label = "signs", .log2 = true};
  panel.y = {.label = "size of the mean", .log10 = true};
  panel.series = {std::move(series)};
  return {Figure{"sign-mean", "Mean of k random signs", 1, {panel}, "means.csv"}};
}

ClaimSpec Shrinks() {
  ClaimSpec claim;
  claim.id = "sign-mean/slope";
  claim.items = {"made-up/section-1"};  // an entry of claims/catalogue_*.cc
  claim.statement = "The mean of k random signs shrinks like 1/sqrt(k).";
  claim.kind = ClaimKind::kEquivalence;
  claim.contrast = "log-log slope of the mean against k, minus -1/2";
  claim.no_control = "No mean that shrinks otherwise is drawn.";  // so it is never supported
  claim.margin = {.value = 0.1, .unit = "slope", .justification = "1/k would be at -1."};
  claim.scale = "Made up, Section 1; any k.";
  claim.evidence = [](const Settings& settings, const Tables& tables) {
    if (settings.GetList("k").size() < 3) return NotTestedBecause("--k has fewer than three");
    return AgainstReference("slope", LogSlopes(tables.at("means"), "k", "mean"), -0.5);
  };
  return claim;
}

}  // namespace

Experiment SignMean() {
  Experiment experiment;
  experiment.name = "sign-mean";  // numsim run sign-mean
  experiment.title = "mean of k random signs";
  experiment.reproduces = "made up, Section 1";  // real ones: "Figure 5 of [Fishman]"
  experiment.description = "Draws k signs many times and measures how large their mean is.";
  experiment.options = {
      {.name = "k",
       .quick = "16,64,256",
       .paper = "16,64,256,1024,4096",
       .help = "numbers of signs, separated by commas"},
      {.name = "draws", .quick = "400", .paper = "4000", .help = "draws of each number of signs"},
  };
  experiment.presets = {{"quick", 3, 1}, {"paper", 10}};
  experiment.tables = {
      {.name = "means",
       .columns = {{"k", "number of signs"},
                   {"seed", "seed of the signs"},
                   {"mean", "root mean square of the mean, over the draws"}}},
      {.name = "by_k",
       .derived = true,
       .columns = {{"k", "number of signs"}, {"mean", "mean over seeds"}}},
  };
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = {Shrinks()};
  experiment.scale = [](const Settings& settings, const Tables&) {
    return settings.Get("k") + " signs";
  };
  return experiment;
}

}  // namespace numsim::experiments
