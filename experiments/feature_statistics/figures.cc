// The figures of `feature-statistics`: Figure 11, features by depth and through training, and how
// often a maximum overruns its history.
#include <fmt/format.h>

#include <cmath>

#include "experiments/feature_statistics/feature_statistics.h"

namespace numsim::experiments::feature_statistics {
namespace {

// Smaller shares are drawn at this value.
constexpr double kLeastShare = 1e-4;
// The first style after those of the six operands.
constexpr int kIndependentStyle = 6;

std::string ScaleText(const std::string& scale) {
  return scale == kNoLayerScale ? "no layer-scale" : "layer-scale from " + scale;
}

struct NamedBlock {
  std::string name, block;
  int style;
};

// Returns the first, middle and last block, or fewer if there are not that many.
std::vector<NamedBlock> SelectedBlocks(const Frame& features) {
  const std::vector<std::string> blocks = features.Distinct("block");
  std::vector<NamedBlock> selected = {{"first block", blocks.front(), 0}};
  if (blocks.size() > 2) selected.push_back({"middle block", blocks[blocks.size() / 2], 2});
  if (blocks.size() > 1) selected.push_back({"last block", blocks.back(), 1});
  return selected;
}

// Adds the curves of the mean and, dashed, of the maximum.
void AddCurves(const Frame& features, const std::string& name, int style, Panel& panel) {
  for (const std::string_view column : {"mean_abs", "max_abs"}) {
    Series series = Line(features, "step", column);
    series.style = style;
    series.dashed = column == "max_abs";
    series.label = fmt::format("{}, {}", name, series.dashed ? "max" : "mean");
    panel.series.push_back(std::move(series));
  }
}

Figure StatisticsFigure(const Frame& features) {
  Figure figure{
      "feature-statistics", "Mean and largest magnitude through training", 2, {}, "features.csv"};
  const Frame first_tower = features.Where("tower", features.Text("tower"));
  for (const Frame& training : first_tower.By({"size", "layer_scale"})) {
    for (const std::string_view tensor : {kWeightGradient, kOutput}) {
      const bool gradient = tensor == kWeightGradient;
      const Frame of_tensor = training.Where("tensor", tensor);
      Panel panel;
      panel.title = fmt::format("{}, {}: {}",
                                training.Text("size"),
                                ScaleText(training.Text("layer_scale")),
                                gradient ? "gradient of the MLP's first weight" : "block output");
      panel.x = AxisOf(features, "step", "step");
      panel.y = {.label = gradient ? "|gradient|" : "|feature|", .log10 = true};
      for (const NamedBlock& block : SelectedBlocks(of_tensor)) {
        AddCurves(of_tensor.Where("block", block.block), block.name, block.style, panel);
      }
      figure.panels.push_back(std::move(panel));
    }
  }
  return figure;
}

// Returns an empty panel of a size and tower.
Panel TowerPanel(const Frame& tower, const char* label) {
  Panel panel;
  panel.title = fmt::format("{}, {}", tower.Text("size"), tower.Text("tower"));
  panel.y = {.label = label, .log10 = true};
  return panel;
}

// Returns the figure of the last block's output against the step.
Figure GrowthFigure(const Frame& features) {
  Figure figure{
      "feature-growth", "Output of the last block through training", 2, {}, "features.csv"};
  for (const Frame& tower : features.Where("tensor", kOutput).By({"size", "tower"})) {
    Panel panel = TowerPanel(tower, "|feature|");
    panel.x = AxisOf(features, "step", "step");
    const Frame last_block = tower.Where("block", tower.Distinct("block").back());
    int style = 0;
    for (const Frame& training : last_block.By({"layer_scale"})) {
      AddCurves(training, ScaleText(training.Text("layer_scale")), style++, panel);
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

// Returns mean magnitudes of growth.csv against the block; `when` is the column first or last.
Series DepthSeries(const Frame& growth, const std::string& when) {
  Series series;
  series.x = growth.Numbers("block");
  series.y = growth.Numbers(when);
  if (std::isnan(growth.Number(when + "_low"))) return series;  // one seed
  series.low = growth.Numbers(when + "_low");
  series.high = growth.Numbers(when + "_high");
  return series;
}

Figure DepthFigure(const Frame& growth) {
  Figure figure{"feature-depth", "Mean magnitude of features by depth", 2, {}, "growth.csv"};
  const Frame outputs = growth.Where("tensor", kOutput).Where("statistic", "mean_abs");
  for (const Frame& tower : outputs.By({"size", "tower"})) {
    Panel panel = TowerPanel(tower, "mean |feature|");
    panel.x = {.label = "block"};
    int style = 0;
    for (const Frame& training : tower.By({"layer_scale"})) {
      for (const std::string when : {"first", "last"}) {
        Series series = DepthSeries(training, when);
        series.style = style;
        series.dashed = when == "first";
        series.label = fmt::format("{}, {}",
                                   ScaleText(training.Text("layer_scale")),
                                   series.dashed ? "at the start" : "at the end");
        panel.series.push_back(std::move(series));
      }
      ++style;
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

// Returns the share of overruns for independent maxima of the same distribution: the newest of
// history + 1 maxima would be the largest as often as any other.
Series IndependentSeries(const Frame& smoothness) {
  Series series;
  series.label = "1 / (history + 1)";
  series.style = kIndependentStyle;
  series.dashed = true;
  series.markers = false;
  for (const std::string& history : smoothness.Distinct("history")) {
    series.x.push_back(std::stod(history));
    series.y.push_back(1 / (series.x.back() + 1));
  }
  return series;
}

Panel OverrunPanel(const Frame& training, Forecast forecast) {
  Panel panel;
  panel.title = fmt::format("{}, {}: {} of the history",
                            training.Text("size"),
                            ScaleText(training.Text("layer_scale")),
                            forecast == Forecast::kMax ? "largest" : "mean");
  panel.x = {.label = "history, steps", .log2 = true};
  panel.y = {.label = "share of the steps", .log10 = true, .low = kLeastShare, .high = 1};
  if (forecast == Forecast::kMax) panel.series.push_back(IndependentSeries(training));
  const Frame forecasts = training.Where("forecast", ToString(forecast));
  int style = 0;
  for (const BlockTensor& tensor : BlockTensors()) {
    if (!tensor.operand) continue;
    Series series = Line(forecasts.Where("tensor", tensor.name), "history", "overruns");
    series.style = style++;
    series.markers = true;
    series.label = std::string(tensor.name);
    panel.series.push_back(std::move(series));
  }
  return panel;
}

Figure OverrunFigure(const Frame& smoothness) {
  Figure figure{"feature-overruns",
                "Steps whose maximum is above the forecast from previous steps",
                2,
                {},
                "smoothness.csv"};
  const Frame first_tower =
      smoothness.Where("tower", smoothness.Text("tower")).Where("steps", kAfterWarmup);
  for (const Frame& training : first_tower.By({"size", "layer_scale"})) {
    for (const Forecast forecast : kForecasts) {
      figure.panels.push_back(OverrunPanel(training, forecast));
    }
  }
  return figure;
}

}  // namespace

study::Named<std::function<Figure(const Results&)>> Figures() {
  const auto draw = [](Figure (*of)(const Frame&), const char* table) {
    return [=](const Results& results) {
      Figure figure = of(results.Of(table));
      if (results.settings.seeds == 1) figure.title += " (one seed)";
      return figure;
    };
  };
  return {{"statistics", draw(StatisticsFigure, "features")},
          {"growth", draw(GrowthFigure, "features")},
          {"depth", draw(DepthFigure, "growth")},
          {"overruns", draw(OverrunFigure, "smoothness")}};
}

}  // namespace numsim::experiments::feature_statistics
