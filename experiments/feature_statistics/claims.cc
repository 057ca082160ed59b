// The claims of [SwitchBack] about maxima and magnitudes of tensors, and the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::feature_statistics {
namespace {

constexpr const char* kScale =
    "The paper: CLIP ViT-Base to ViT-Huge, batches of 16384. A run states its own size; the maxima "
    "of smaller batches vary more.";
// Longest history by which forecasts are judged.
constexpr double kJudgedHistory = 16;
// The number of blocks of ViT-Base, the smallest model of Figure 11.
constexpr size_t kLeastBlocks = 12;

double Log2(double x) { return Log(x) / Log(2); }
double Factor(double log2) { return Exp(log2 * Log(2)); }

// The tensors of a claim, by the names of BlockTensors().
struct Group {
  std::string name, text;
  std::vector<std::string_view> tensors;

  bool Has(std::string_view tensor) const {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  }
};

std::string TrainingOf(const Frame& row) {
  return row.Text("size") + " " + row.Text("layer_scale") + " " + row.Text("seed");
}

// Returns the trainings that diverged, by TrainingOf.
std::set<std::string> DivergedTrainings(const Tables& tables) {
  std::set<std::string> diverged;
  Frame(tables.at(std::string(kFinalTable))).ForEach([&](const Frame& row) {
    if (row.Text("status") != "finished") diverged.insert(TrainingOf(row));
  });
  return diverged;
}

// Selects the forecasts of a group of tensors by so many steps, in `maxima` or `smoothness`.
Frame ForecastsOf(const Frame& table, const Group& group, Forecast forecast, double history) {
  return table.Where("steps", kAfterWarmup)
      .Where("forecast", ToString(forecast))
      .Where("history", history)
      .Where([&](const Frame& row) { return group.Has(row.Text("tensor")); });
}

using Outcome = std::function<double(const Frame& blocks)>;

// Returns evidence about the largest outcome of all trainings, towers and tensors of a seed,
// compared with 0. `maxima` are the forecasts that count.
Evidence LargestOutcome(const Tables& tables,
                        const Frame& maxima,
                        const std::string& name,
                        const Outcome& outcome) {
  const std::set<std::string> diverged = DivergedTrainings(tables);
  const Frame compared = maxima.Where([](const Frame& row) { return row.Number("compared") > 0; });
  SeedValues largest;
  for (const Frame& blocks : compared.By({"size", "layer_scale", "tower", "tensor", "seed"})) {
    double& value = largest[blocks.Text("seed")];
    const bool whole = !diverged.contains(TrainingOf(blocks));
    value = std::max(value, whole ? outcome(blocks) : kInfinity);
  }
  if (largest.empty()) return NotTestedBecause("no step after the warm-up could be compared");
  return AgainstReference(name, largest, 0);
}

double ChangeAt95(const Frame& blocks) { return blocks.Mean("change_95"); }

Evidence SmoothEvidence(const Tables& tables, const Group& group) {
  const Frame maxima = tables.at(std::string(kMaximaTable));
  Evidence evidence =
      LargestOutcome(tables, ForecastsOf(maxima, group, Forecast::kMax, 1), group.name, ChangeAt95);
  const Frame smoothness = tables.at(std::string(kSmoothnessTable));
  for (const Frame& tensor : ForecastsOf(smoothness, group, Forecast::kMax, 1).By({"tensor"})) {
    evidence.measured +=
        fmt::format("{}  {}: a factor of {:.3f} at 95 % of the steps, {:.3f} at half",
                    evidence.measured.empty() ? "" : "\n",
                    tensor.Text("tensor"),
                    Factor(Largest(tensor, "change_95")),
                    Factor(Largest(tensor, "change_median")));
  }
  return evidence;
}

ClaimSpec BaseClaim(const std::string& name, ClaimKind kind) {
  ClaimSpec claim;
  claim.id = "feature-statistics/" + name;
  claim.items = {"switchback/section-2.3"};
  claim.kind = kind;
  claim.scale = kScale;
  return claim;
}

ClaimSpec Smooth(const Group& group) {
  ClaimSpec claim = BaseClaim("smooth-" + group.name, ClaimKind::kEquivalence);
  claim.items.push_back("switchback/figure-11");
  claim.statement = fmt::format("The maximum of {} \"tends to evolve smoothly\".", group.text);
  claim.contrast =
      "log2 of the factor by which the maximum changes from one step to the next, at 95 % of the "
      "steps after the warm-up: mean over the blocks of a tower, then the largest of all "
      "trainings, towers and these tensors; compared with 0, no change";
  claim.margin = {1, "binades", "A change by a factor of 2 is one exponent of a format."};
  claim.evidence = [group](const Settings&, const Tables& tables) {
    return SmoothEvidence(tables, group);
  };
  return claim;
}

// Returns the longest history of the table that is at most kJudgedHistory.
double JudgedHistory(const Frame& table) {
  double history = 1;
  for (const double one : table.Numbers("history")) {
    if (one <= kJudgedHistory) history = std::max(history, one);
  }
  return history;
}

double PercentUnlikeTensorWise(const Frame& blocks) {
  return 100 * std::max(ShareOf(blocks, "clipped"), 1 - ShareOf(blocks, "within_2"));
}

ClaimSpec MovingAverage(const Group& group) {
  ClaimSpec claim = BaseClaim("moving-average-" + group.name, ClaimKind::kEquivalence);
  claim.statement = fmt::format(
      "\"Using a moving average for a maximum which is divided directly in the matmul is similar "
      "to tensor-wise quantization\": of {}.",
      group.text);
  claim.contrast =
      "percentage of the steps after the warm-up at which the mean of the last maxima (the longest "
      "of --histories up to 16) does not serve: the larger of those whose maximum is above 16/15 "
      "of it, so that saturation loses more than rounding to E4M3, and those that are not within a "
      "factor of 2; the largest of all trainings, towers and these tensors; compared with 0";
  claim.margin = {1, "% of the steps", "Such steps are then an exception."};
  claim.evidence = [group](const Settings&, const Tables& tables) {
    const Frame maxima = tables.at(std::string(kMaximaTable));
    const Frame judged = ForecastsOf(maxima, group, Forecast::kMean, JudgedHistory(maxima));
    return LargestOutcome(tables, judged, group.name, PercentUnlikeTensorWise);
  };
  return claim;
}

// Returns the outputs of blocks at the last record of each training.
Frame OutputsAtTheEnd(const Tables& tables) {
  const Frame outputs = Frame(tables.at(std::string(kFeaturesTable))).Where("tensor", kOutput);
  std::map<std::string, double> last;
  for (const Frame& training : outputs.By({"size", "layer_scale", "seed"})) {
    last[TrainingOf(training)] = Largest(training, "step");
  }
  return outputs.Where(
      [&](const Frame& row) { return row.Number("step") == last.at(TrainingOf(row)); });
}

size_t LayersOf(const Frame& row) { return ParseSize("sizes", row.Text("size")).layers; }
bool IsLastBlock(const Frame& row) {
  return row.Number("block") + 1 == static_cast<double>(LayersOf(row));
}

// Returns evidence about magnitudes for each size and tower, minus those of the arm whose column
// `key` is `baseline`.
Evidence MagnitudeGaps(const Tables& tables,
                       const Frame& outputs,
                       std::string_view key,
                       const std::string& baseline) {
  const std::set<std::string> diverged = DivergedTrainings(tables);
  Evidence evidence;
  evidence.outcomes = OutcomesOf(outputs, {"size", "tower", key}, [&](const Frame& row) {
    return diverged.contains(TrainingOf(row)) ? kInfinity : Log2(row.Number("mean_abs"));
  });
  for (const Frame& tower : outputs.By({"size", "tower"})) {
    const std::string prefix = tower.Text("size") + " / " + tower.Text("tower") + " / ";
    for (const std::string& arm : tower.Distinct(key)) {
      if (arm != baseline) evidence.contrasts.push_back(Gap(prefix + arm, prefix + baseline));
    }
  }
  return evidence;
}

ClaimSpec MagnitudeClaim(const std::string& name, std::string statement, std::string contrast) {
  ClaimSpec claim = BaseClaim(name, ClaimKind::kDifference);
  claim.items.push_back("switchback/figure-2");
  claim.statement = std::move(statement);
  claim.contrast = std::move(contrast);
  claim.margin = {1, "binades", "A factor of 2 is one step of an exponent."};
  return claim;
}

ClaimSpec Depth() {
  ClaimSpec claim = MagnitudeClaim(
      "large-in-later-blocks",
      "Without layer-scale \"the average feature magnitude becomes large for later blocks\".",
      "log2 of the mean magnitude of the last block's output minus that of the first block's, at "
      "the end of the training");
  claim.scale =
      "The paper: ViT-Huge, 32 blocks. Models of 12 blocks or more, as ViT-Base, test it.";
  claim.evidence = [](const Settings&, const Tables& tables) {
    const Frame without = OutputsAtTheEnd(tables).Where("layer_scale", kNoLayerScale);
    if (without.Empty()) return NotTestedBecause("--layer-scales leaves out none");
    const Frame deep =
        without.Where([](const Frame& row) { return LayersOf(row) >= kLeastBlocks; });
    if (deep.Empty()) {
      return NotTestedBecause("out of reach: fewer than 12 blocks, the number of ViT-Base");
    }
    const Frame ends =
        deep.Where([](const Frame& row) { return row.Number("block") == 0 || IsLastBlock(row); });
    return MagnitudeGaps(tables, ends, "block", "0");
  };
  return claim;
}

ClaimSpec LayerScale() {
  ClaimSpec claim = MagnitudeClaim(
      "zero-init-layer-scale",
      "\"Zero-init layer scale prevents high feature magnitudes.\"",
      "log2 of the mean magnitude of the last block's output without layer-scale minus that with "
      "one that starts at 0, at the end of the training");
  claim.items.push_back("switchback/figure-11");
  claim.evidence = [](const Settings&, const Tables& tables) {
    const std::string zero(kZeroLayerScale);
    const Frame both = OutputsAtTheEnd(tables).Where([&](const Frame& row) {
      const std::string scale = row.Text("layer_scale");
      return IsLastBlock(row) && (scale == kNoLayerScale || scale == zero);
    });
    if (both.Distinct("layer_scale").size() < 2) {
      return NotTestedBecause("--layer-scales leaves out none or 0");
    }
    return MagnitudeGaps(tables, both, "layer_scale", zero);
  };
  return claim;
}

// Describes the largest of the previous maxima as a forecast, which is not in the paper.
std::string DelayedScalingText(const Frame& smoothness) {
  const double history = JudgedHistory(smoothness);
  std::string text;
  for (const BlockTensor& tensor : BlockTensors()) {
    if (!tensor.operand) continue;
    const Group one{"", "", {tensor.name}};
    const double clipped =
        Largest(ForecastsOf(smoothness, one, Forecast::kMax, history), "clipped");
    text += fmt::format("\n  {}: {:.2f} %", tensor.name, 100 * clipped);
  }
  return fmt::format(
      "If the largest of {} previous maxima takes the place of their mean, as delayed scaling is "
      "implemented in practice, so many steps after the warm-up exceed it by more than 1/15 (the "
      "largest of all trainings and towers):{}",
      history,
      text);
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  const Group inputs{"inputs", "the inputs of linear layers", {"mlp-first-x", "mlp-second-x"}};
  const Group weights{"weights", "weights", {"mlp-first-w", "mlp-second-w"}};
  const Group gradients{
      "gradients", "the output gradients of linear layers", {"mlp-first-g", "mlp-second-g"}};
  const Group features{"features", "the output of transformer blocks", {kOutput}};
  const Group weight_gradients{"weight-gradients",
                               "the gradients of the MLP's weights",
                               {kWeightGradient, "mlp-second-weight-gradient"}};
  return {Smooth(inputs),
          Smooth(weights),
          Smooth(gradients),
          Smooth(features),
          Smooth(weight_gradients),
          MovingAverage(inputs),
          MovingAverage(weights),
          MovingAverage(gradients),
          Depth(),
          LayerScale()};
}

std::string Notes(const Settings&, const Tables& tables) {
  const Frame trainings = tables.at(std::string(kFinalTable));
  std::string text = "Training loss at the end, nats:";
  for (const Frame& training : trainings.By({"size", "layer_scale"})) {
    text += fmt::format(" {} with layer-scale {}: {:.3f};",
                        training.Text("size"),
                        training.Text("layer_scale"),
                        training.Mean("train_loss"));
  }
  text.back() = '.';
  text += " A training that has learnt less also has features that grew less.\n";
  return text + DelayedScalingText(tables.at(std::string(kSmoothnessTable)));
}

}  // namespace numsim::experiments::feature_statistics
