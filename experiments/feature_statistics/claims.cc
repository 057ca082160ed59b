// The evidence of `feature-statistics`: maxima and magnitudes of tensors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::feature_statistics {
namespace {

constexpr const char* kScaled = "scaled";  // a table
// The number of blocks of ViT-Base, the smallest model of Figure 11.
constexpr size_t kLeastBlocks = 12;

double Log2(double x) { return Log(x) / Log(2); }
double Factor(double log2) { return Exp(log2 * Log(2)); }

// The tensors of a claim, by the names of BlockTensors().
struct Group {
  std::string name;
  std::vector<std::string_view> tensors;

  bool Has(std::string_view tensor) const {
    return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
  }
};

std::string TrainingOf(const Frame& row) {
  return row.Text("size") + " " + row.Text("layer_scale") + " " + row.Text("seed");
}

// Returns the trainings that diverged, by TrainingOf.
std::set<std::string> DivergedTrainings(const Results& results) {
  std::set<std::string> diverged;
  results.Of("final").ForEach([&](const Frame& row) {
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
Evidence LargestOutcome(const Results& results,
                        const Frame& maxima,
                        const std::string& name,
                        const Outcome& outcome) {
  const std::set<std::string> diverged = DivergedTrainings(results);
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

// The least smooth tensors: what is said of others is to fail of them.
const Group kLeastSmooth = {"weight-gradients", {kWeightGradient, "mlp-second-weight-gradient"}};
const Group kGradients = {"gradients", {"mlp-first-g", "mlp-second-g"}};

Evidence SmoothEvidence(const Results& results, const Group& group) {
  const Frame maxima = results.Of("maxima");
  const auto changes = [&](const Group& of) {
    return LargestOutcome(results, ForecastsOf(maxima, of, Forecast::kMax, 1), of.name, ChangeAt95);
  };
  Evidence evidence = changes(group);
  AddControl(changes(kLeastSmooth), evidence);
  const Frame smoothness = results.Of("smoothness");
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

// Returns the longest history of the table that is at most kJudgedHistory.
double JudgedHistory(const Frame& table) {
  double history = 1;
  for (const double one : table.Numbers("history")) {
    if (one <= kJudgedHistory) history = std::max(history, one);
  }
  return history;
}

// The signal over noise, in dB, that an operand loses if a moving average of maxima takes the place of its own.
// The control is half of the average.
Evidence MovingAverageEvidence(const Results& results, const Group& group) {
  if (!results.tables.contains(kScaled)) {
    Evidence none = NotTestedBecause(
        "this run is older than the measurement of the signal over noise (scaled.csv)");
    none.left_out = true;  // a table that is missing must not ease other claims
    return none;
  }
  const Frame scaled =
      results.Of(kScaled).Where([&](const Frame& row) { return group.Has(row.Text("tensor")); });
  const auto loss = [&](const char* column) {
    return LargestOutcome(results, scaled, group.name, [=](const Frame& blocks) {
      return blocks.Mean("current") - blocks.Mean(column);
    });
  };
  Evidence evidence = loss("average");
  AddControl(loss("half"), evidence);
  return evidence;
}

// Returns the outputs of blocks at the last record of each training.
Frame OutputsAtTheEnd(const Results& results) {
  const Frame outputs = results.Of("features").Where("tensor", kOutput);
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
Evidence MagnitudeGaps(const Results& results,
                       const Frame& outputs,
                       std::string_view key,
                       const std::string& baseline) {
  const std::set<std::string> diverged = DivergedTrainings(results);
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

Evidence LaterBlocks(const Results& results) {
  const Frame without = OutputsAtTheEnd(results).Where("layer_scale", kNoLayerScale);
  if (without.Empty()) return NotTestedBecause("--layer-scales leaves out none");
  const Frame deep = without.Where([](const Frame& row) { return LayersOf(row) >= kLeastBlocks; });
  if (deep.Empty()) {
    return NotTestedBecause("out of reach: fewer than 12 blocks, the number of ViT-Base");
  }
  const Frame ends =
      deep.Where([](const Frame& row) { return row.Number("block") == 0 || IsLastBlock(row); });
  return MagnitudeGaps(results, ends, "block", "0");
}

Evidence LayerScale(const Results& results) {
  const std::string zero(kZeroLayerScale);
  const Frame both = OutputsAtTheEnd(results).Where([&](const Frame& row) {
    const std::string scale = row.Text("layer_scale");
    return IsLastBlock(row) && (scale == kNoLayerScale || scale == zero);
  });
  if (both.Distinct("layer_scale").size() < 2) {
    return NotTestedBecause("--layer-scales leaves out none or 0");
  }
  return MagnitudeGaps(results, both, "layer_scale", zero);
}

// Describes the largest of the previous maxima as a forecast, which is not in the paper.
std::string DelayedScalingText(const Frame& smoothness) {
  const double history = JudgedHistory(smoothness);
  std::string text;
  for (const BlockTensor& tensor : BlockTensors()) {
    if (!tensor.operand) continue;
    const Group one{"", {tensor.name}};
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

study::Named<std::function<Evidence(const Results&)>> EvidenceFunctions() {
  study::Named<std::function<Evidence(const Results&)>> functions = {{"later-blocks", LaterBlocks},
                                                                     {"layer-scale", LayerScale}};
  for (const Group& group : {Group{"inputs", {"mlp-first-x", "mlp-second-x"}},
                             Group{"weights", {"mlp-first-w", "mlp-second-w"}},
                             kGradients,
                             Group{"features", {kOutput}},
                             kLeastSmooth}) {
    functions["smooth-" + group.name] = [=](const Results& results) {
      return SmoothEvidence(results, group);
    };
    functions["moving-average-" + group.name] = [=](const Results& results) {
      return MovingAverageEvidence(results, group);
    };
  }
  return functions;
}

std::string Notes(const Results& results) {
  const Frame trainings = results.Of("final");
  std::string text = "Training loss at the end, nats:";
  for (const Frame& training : trainings.By({"size", "layer_scale"})) {
    text += fmt::format(" {} with layer-scale {}: {:.3f};",
                        training.Text("size"),
                        training.Text("layer_scale"),
                        training.Mean("train_loss"));
  }
  text.back() = '.';
  text += " A training that has learnt less also has features that grew less.\n";
  return text + DelayedScalingText(results.Of("smoothness"));
}

}  // namespace numsim::experiments::feature_statistics
