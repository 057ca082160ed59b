// The summary of `feature-statistics`: verdicts on the claims of [SwitchBack], from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "experiments/core/verdict.h"
#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/distinct.h"
#include "experiments/shared/training.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::feature_statistics {
namespace {

// A maximum evolves smoothly if at 95 % of the steps it changes by less than this factor.
constexpr double kSmooth = 2;
// A forecast works like the tensor's own maximum if nothing is clipped at this share of the steps,
// and the maximum is within a factor of 2 of the forecast at this share of the steps.
constexpr double kServes = 0.99;
// Longest history for which that is judged.
constexpr double kJudgedHistory = 16;

// Selects the rows of smoothness.csv for one kind of forecast.
struct ForecastRows {
  std::string_view steps;
  Forecast forecast = Forecast::kMax;
  double history = 1;

  // Returns the rows of a tensor in which any step was compared.
  std::vector<size_t> Of(const Table& smoothness, std::string_view tensor) const {
    std::vector<size_t> rows;
    for (size_t r = 0; r < smoothness.rows.size(); ++r) {
      if (smoothness.Text(r, "tensor") == tensor && smoothness.Text(r, "steps") == steps &&
          smoothness.Text(r, "forecast") == ToString(forecast) &&
          smoothness.Number(r, "history") == history &&
          !std::isnan(smoothness.Number(r, "overruns"))) {
        rows.push_back(r);
      }
    }
    return rows;
  }
};

double Largest(const Table& table, const std::vector<size_t>& rows, const char* column) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const size_t r : rows) largest = std::max(largest, table.Number(r, column));
  return largest;
}
double Smallest(const Table& table, const std::vector<size_t>& rows, const char* column) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const size_t r : rows) smallest = std::min(smallest, table.Number(r, column));
  return smallest;
}

// Returns 2^log2.
double Factor(double log2) { return Exp(log2 * Log(2)); }

// The number of cases (training, tower) in which a tensor satisfies a claim, and of all cases.
struct Count {
  size_t yes = 0, all = 0;
};

Count CountOf(const std::vector<size_t>& rows, const std::function<bool(size_t)>& does) {
  return {static_cast<size_t>(std::count_if(rows.begin(), rows.end(), does)), rows.size()};
}

bool IsSmooth(const Table& smoothness, size_t r) {
  return Factor(smoothness.Number(r, "change_95")) < kSmooth;
}

Tally TallyOf(const Count& count) {
  Tally tally;
  for (size_t i = 0; i < count.all; ++i) tally.Add(AnswerOf(i < count.yes));
  return tally;
}

Count CountSmooth(const Table& smoothness, std::string_view steps, std::string_view tensor) {
  const ForecastRows one{steps};
  return CountOf(one.Of(smoothness, tensor), [&](size_t r) { return IsSmooth(smoothness, r); });
}

Claim SmoothClaim(const Settings& settings, const Table& smoothness) {
  Count settled, all;
  std::string lines;
  const ForecastRows one{kAfterWarmup};
  for (const BlockTensor& tensor : BlockTensors()) {
    const std::vector<size_t> rows = one.Of(smoothness, tensor.name);
    if (rows.empty()) continue;
    const Count smooth = CountSmooth(smoothness, kAfterWarmup, tensor.name);
    const Count with_warmup = CountSmooth(smoothness, kAllSteps, tensor.name);
    settled.yes += smooth.yes;
    settled.all += smooth.all;
    all.yes += with_warmup.yes;
    all.all += with_warmup.all;
    lines += fmt::format("\n  {}: factor {:.3f} at 95 % of the steps, {:.3f} at half, {} of {}",
                         tensor.name,
                         Factor(Largest(smoothness, rows, "change_95")),
                         Factor(Largest(smoothness, rows, "change_median")),
                         smooth.yes,
                         smooth.all);
  }
  return {
      "The maximum of these tensors \"tends to evolve smoothly\" (Section 2.3, Figure 11).",
      fmt::format("Smooth: from one step to the next the maximum changes by less than a factor of "
                  "{:g} at 95 % of the steps, mean over blocks and seeds. After the warm-up {} of "
                  "{} cases (tensor, training, tower) are smooth, including the warm-up {} of {}. "
                  "Largest factors of all trainings and towers after the warm-up, and smooth "
                  "cases:{}",
                  kSmooth,
                  settled.yes,
                  settled.all,
                  all.yes,
                  all.all,
                  lines),
      TallyOf(settled).Verdict(),
      TrainingScaleText(settings)};
}

// Returns the longest history of the table that is at most kJudgedHistory.
double JudgedHistory(const Table& smoothness) {
  double history = 1;
  for (size_t r = 0; r < smoothness.rows.size(); ++r) {
    const double one = smoothness.Number(r, "history");
    if (one <= kJudgedHistory) history = std::max(history, one);
  }
  return history;
}

Claim ForecastClaim(const Settings& settings,
                    const Table& smoothness,
                    Forecast forecast,
                    const char* claim) {
  const ForecastRows kind{kAfterWarmup, forecast, JudgedHistory(smoothness)};
  Count total;
  size_t unclipped = 0;
  std::string lines;
  for (const BlockTensor& tensor : BlockTensors()) {
    const std::vector<size_t> rows = kind.Of(smoothness, tensor.name);
    if (!tensor.operand || rows.empty()) continue;
    const auto is_unclipped = [&](size_t r) {
      return smoothness.Number(r, "clipped") <= 1 - kServes;
    };
    const Count serves = CountOf(rows, [&](size_t r) {
      return is_unclipped(r) && smoothness.Number(r, "within_2") >= kServes;
    });
    unclipped += CountOf(rows, is_unclipped).yes;
    total.yes += serves.yes;
    total.all += serves.all;
    lines += fmt::format(
        "\n  {}: {:.2f} % overrun, {:.2f} % clipped, {:.2f} % within a factor of 2, largest "
        "excess {:.3g}, {} of {}",
        tensor.name,
        100 * Largest(smoothness, rows, "overruns"),
        100 * Largest(smoothness, rows, "clipped"),
        100 * Smallest(smoothness, rows, "within_2"),
        Largest(smoothness, rows, "largest_excess"),
        serves.yes,
        serves.all);
  }
  return {
      claim,
      fmt::format("Similar: of the steps after the warm-up at most {:g} % are clipped (the maximum "
                  "is above 16/15 of the forecast from {} steps, so saturation loses more than "
                  "rounding to E4M3), and at least {:g} % are within a factor of 2. Of {} cases "
                  "(operand, training, tower) {} are not clipped more often than that, {} are "
                  "similar. Worst values of all trainings and towers, and similar cases:{}",
                  100 * (1 - kServes),
                  kind.history,
                  100 * kServes,
                  total.all,
                  unclipped,
                  total.yes,
                  lines),
      TallyOf(total).Verdict(),
      TrainingScaleText(settings)};
}

// Returns the rows of depth.csv of mean magnitudes with that layer-scale.
std::vector<size_t> DepthRows(const Table& depth, std::string_view scale) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < depth.rows.size(); ++r) {
    if (depth.Text(r, "layer_scale") == scale && depth.Text(r, "statistic") == "mean_abs") {
      rows.push_back(r);
    }
  }
  return rows;
}

std::string IntervalText(const Table& table, size_t r, const std::string& column) {
  const double low = table.Number(r, column + "_low");
  if (std::isnan(low)) return " (one seed)";
  return fmt::format(" [{:.3g}, {:.3g}]", low, table.Number(r, column + "_high"));
}

using IsBeyond = Answer (*)(const Estimate&, double);

// Returns whether the ratio in a column is beyond 1, for each of the rows, by its interval.
Tally TallyBeyondOne(const Table& table,
                     const std::vector<size_t>& rows,
                     const std::string& column,
                     IsBeyond is_beyond) {
  Tally tally;
  for (const size_t r : rows) {
    tally.Add(is_beyond({table.Number(r, column),
                         table.Number(r, column + "_low"),
                         table.Number(r, column + "_high")},
                        1));
  }
  return tally;
}

std::string BasisOf(const Settings& settings, const Tally& tally) {
  std::string text = TrainingScaleText(settings);
  if (tally.Undecided() == 0) return text;
  return text + fmt::format("; {}: {}",
                            tally.UndecidedText(),
                            settings.seeds < 2 ? "one seed gives no interval; use --seeds 3"
                                               : "their intervals contain 1; use more --seeds");
}

// Returns the ratio of the last to the first record of the last block's output, from growth.csv.
std::string GrowthText(const Table& growth, const Table& depth, size_t r) {
  const auto same = [&](size_t g, const char* column) {
    return growth.Text(g, column) == depth.Text(r, column);
  };
  std::string text;
  for (size_t g = 0; g < growth.rows.size(); ++g) {
    if (growth.Text(g, "tensor") == kOutput && same(g, "size") && same(g, "layer_scale") &&
        same(g, "tower") && same(g, "statistic")) {
      text = fmt::format("{:.3g}{} times that at the start",
                         growth.Number(g, "ratio"),
                         IntervalText(growth, g, "ratio"));
    }
  }
  return text;  // of the last block, whose row comes last
}

Claim DepthClaim(const Settings& settings, const Table& depth, const Table& growth) {
  const std::vector<size_t> rows = DepthRows(depth, kNoLayerScale);
  std::string lines;
  for (const size_t r : rows) {
    lines += fmt::format("\n  {} {}: {:.3g}, {:.3g}{} times the first block's, {}",
                         depth.Text(r, "size"),
                         depth.Text(r, "tower"),
                         depth.Number(r, "last_block"),
                         depth.Number(r, "over_first_block"),
                         IntervalText(depth, r, "over_first_block"),
                         GrowthText(growth, depth, r));
  }
  const Tally grows = TallyBeyondOne(depth, rows, "over_first_block", IsAbove);
  return {
      "Without layer-scale \"the average feature magnitude becomes large for later blocks\" "
      "(Section 2.3, Figure 2, right).",
      fmt::format("Criterion: at the end the last block's output is larger than the first block's, "
                  "with the 95 % interval of the ratio above 1: {} of {}. Mean magnitude of the "
                  "last block's output at the end:{}",
                  grows.Yes(),
                  grows.Cases(),
                  lines),
      grows.Verdict(),
      BasisOf(settings, grows)};
}

Claim LayerScaleClaim(const Settings& settings, const Table& depth, const Table& growth) {
  std::vector<size_t> rows = DepthRows(depth, kZeroLayerScale);
  std::erase_if(rows, [&](size_t r) { return std::isnan(depth.Number(r, "over_none")); });
  std::string lines;
  for (const size_t r : rows) {
    lines += fmt::format("\n  {} {}: {:.3g}, {:.3g}{} times that without layer-scale, {}",
                         depth.Text(r, "size"),
                         depth.Text(r, "tower"),
                         depth.Number(r, "last_block"),
                         depth.Number(r, "over_none"),
                         IntervalText(depth, r, "over_none"),
                         GrowthText(growth, depth, r));
  }
  const Tally smaller = TallyBeyondOne(depth, rows, "over_none", IsBelow);
  return {"Zero-init layer-scale prevents high feature magnitudes (Section 2.3, Figures 2 and 11).",
          fmt::format("Criterion: at the end the last block's output is smaller than without "
                      "layer-scale, with the 95 % interval of the ratio below 1: {} of {}. Mean "
                      "magnitude of the last block's output at the end:{}",
                      smaller.Yes(),
                      smaller.Cases(),
                      lines),
          smaller.Verdict(),
          BasisOf(settings, smaller)};
}

// Returns the training losses at the end of each training, as text.
std::string LossText(const Table& final_table) {
  std::string text;
  for (const std::string& size : Distinct(final_table, "size")) {
    for (const std::string& scale : Distinct(final_table, "layer_scale")) {
      SeedValues losses;
      for (size_t r = 0; r < final_table.rows.size(); ++r) {
        if (final_table.Text(r, "size") == size && final_table.Text(r, "layer_scale") == scale) {
          losses[final_table.Text(r, "seed")] = final_table.Number(r, "train_loss");
        }
      }
      text += fmt::format("{}{} with layer-scale {}: {:.3f}",
                          text.empty() ? "" : ", ",
                          size,
                          scale,
                          OverSeeds(losses).value);
    }
  }
  return text;
}

std::string Notes(const Settings& settings, const Table& final_table) {
  std::string text = fmt::format("Linear layers: {}. A batch has {} examples",
                                 settings.Get("products"),
                                 settings.Get("batch"));
  text += settings.Get("model") == "clip"
              ? " (16384 in the paper); the maxima of small batches vary more."
              : ".";
  text += fmt::format(
      "\nTraining loss at the end, nats: {}. A training that has learnt less also has features "
      "that grew less.",
      LossText(final_table));
  size_t diverged = 0;
  for (size_t r = 0; r < final_table.rows.size(); ++r) {
    diverged += final_table.Text(r, "status") != "finished";
  }
  if (diverged > 0) {
    text += fmt::format(
        "\n{} of {} trainings diverged; their last record is of the step that ended them.",
        diverged,
        final_table.rows.size());
  }
  if (settings.seeds < 3) text += "\nIntervals need --seeds 3 or more.";
  return text;
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Table& smoothness = tables.at(std::string(kSmoothnessTable));
  const Table& depth = tables.at(std::string(kDepthTable));
  const Table& growth = tables.at(std::string(kGrowthTable));
  return {{SmoothClaim(settings, smoothness),
           ForecastClaim(settings,
                         smoothness,
                         Forecast::kMean,
                         "\"Using a moving average for a maximum which is divided directly in the "
                         "matmul is similar to tensor-wise quantization\" (Section 2.3)."),
           ForecastClaim(settings,
                         smoothness,
                         Forecast::kMax,
                         "So is the largest of the previous maxima, which is delayed scaling as "
                         "implemented in practice (not in the paper)."),
           DepthClaim(settings, depth, growth),
           LayerScaleClaim(settings, depth, growth)},
          Notes(settings, tables.at(std::string(kFinalTable)))};
}

}  // namespace numsim::experiments::feature_statistics
