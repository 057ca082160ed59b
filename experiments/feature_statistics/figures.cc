// The figures of `feature-statistics`: Figure 11, features by depth and through training, and how
// often a maximum overruns its history.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/distinct.h"

namespace numsim::experiments::feature_statistics {
namespace {

// Smaller shares are drawn at this value.
constexpr double kLeastShare = 1e-4;
// The first style after those of the six operands.
constexpr int kIndependentStyle = 6;

// Selects the rows of a panel or curve; an empty text selects all values of its column.
struct Selection {
  std::string size, layer_scale, tower, block;
  std::string_view tensor;

  bool Takes(const Table& table, size_t r) const {
    const auto is = [&](const char* column, std::string_view text) {
      return text.empty() || table.Text(r, column) == text;
    };
    return is("size", size) && is("layer_scale", layer_scale) && is("tower", tower) &&
           (block.empty() || table.Text(r, "block") == block) && is("tensor", tensor);
  }
};

std::string ScaleText(const std::string& scale) {
  return scale == kNoLayerScale ? "no layer-scale" : "layer-scale from " + scale;
}

// Returns the distinct values of a column in the selected rows.
std::vector<std::string> ValuesOf(const Table& table,
                                  const Selection& selection,
                                  const char* column) {
  Table part{table.columns, {}};
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (selection.Takes(table, r)) part.rows.push_back(table.rows[r]);
  }
  return Distinct(part, column);
}

struct NamedBlock {
  std::string name, block;
};

// Returns the first, middle and last block, or fewer if there are not that many.
std::vector<NamedBlock> SelectedBlocks(const Table& features, const Selection& selection) {
  const std::vector<std::string> blocks = ValuesOf(features, selection, "block");
  std::vector<NamedBlock> selected = {{"first block", blocks.front()}};
  if (blocks.size() > 2) selected.push_back({"middle block", blocks[blocks.size() / 2]});
  if (blocks.size() > 1) selected.push_back({"last block", blocks.back()});
  return selected;
}

Series CurveOf(const Table& features, const Selection& selection, const char* column) {
  return SeriesOverSeeds(
      features, column, [&](size_t r) { return selection.Takes(features, r); }, 0);
}

// Adds the curves of the mean and, dashed, of the maximum.
void AddCurves(const Table& features,
               const Selection& selection,
               const std::string& name,
               int style,
               Panel& panel) {
  for (const char* const column : {"mean_abs", "max_abs"}) {
    Series series = CurveOf(features, selection, column);
    series.style = style;
    series.dashed = column == std::string_view("max_abs");
    series.label = fmt::format("{}, {}", name, series.dashed ? "max" : "mean");
    panel.series.push_back(std::move(series));
  }
}

Figure StatisticsFigure(const Table& features) {
  Figure figure{
      "feature-statistics", "Mean and largest magnitude through training", 2, {}, "features.csv"};
  const std::string tower = Distinct(features, "tower").front();
  for (const std::string& size : Distinct(features, "size")) {
    for (const std::string& scale : Distinct(features, "layer_scale")) {
      for (const std::string_view tensor : {kWeightGradient, kOutput}) {
        Selection selection{size, scale, tower, "", tensor};
        const bool gradient = tensor == kWeightGradient;
        Panel panel;
        panel.title = fmt::format("{}, {}: {}",
                                  size,
                                  ScaleText(scale),
                                  gradient ? "gradient of the MLP's first weight" : "block output");
        panel.x = StepAxis(features);
        panel.y = {.label = gradient ? "|gradient|" : "|feature|", .log10 = true};
        for (const NamedBlock& block : SelectedBlocks(features, selection)) {
          selection.block = block.block;
          const int style = block.name == "first block" ? 0 : block.name == "last block" ? 1 : 2;
          AddCurves(features, selection, block.name, style, panel);
        }
        figure.panels.push_back(std::move(panel));
      }
    }
  }
  return figure;
}

// Returns the figure of the last block's output against the step.
Figure GrowthFigure(const Table& features) {
  Figure figure{
      "feature-growth", "Output of the last block through training", 2, {}, "features.csv"};
  const std::vector<std::string> scales = Distinct(features, "layer_scale");
  for (const std::string& size : Distinct(features, "size")) {
    for (const std::string& tower : Distinct(features, "tower")) {
      Selection selection{size, "", tower, "", kOutput};
      selection.block = SelectedBlocks(features, selection).back().block;
      Panel panel;
      panel.title = fmt::format("{}, {}", size, tower);
      panel.x = StepAxis(features);
      panel.y = {.label = "|feature|", .log10 = true};
      for (size_t i = 0; i < scales.size(); ++i) {
        selection.layer_scale = scales[i];
        AddCurves(features, selection, ScaleText(scales[i]), static_cast<int>(i), panel);
      }
      figure.panels.push_back(std::move(panel));
    }
  }
  return figure;
}

// Returns mean magnitudes of growth.csv against the block; `when` is the column first or last.
Series DepthSeries(const Table& growth, const Selection& selection, const std::string& when) {
  Series series;
  for (size_t r = 0; r < growth.rows.size(); ++r) {
    if (!selection.Takes(growth, r) || growth.Text(r, "statistic") != "mean_abs") continue;
    series.x.push_back(growth.Number(r, "block"));
    series.y.push_back(growth.Number(r, when));
    const double low = growth.Number(r, when + "_low"), high = growth.Number(r, when + "_high");
    if (std::isnan(low)) continue;  // one seed
    series.low.push_back(low);
    series.high.push_back(high);
  }
  return series;
}

Figure DepthFigure(const Table& growth) {
  Figure figure{"feature-depth", "Mean magnitude of features by depth", 2, {}, "growth.csv"};
  const std::vector<std::string> scales = Distinct(growth, "layer_scale");
  for (const std::string& size : Distinct(growth, "size")) {
    for (const std::string& tower : Distinct(growth, "tower")) {
      Panel panel;
      panel.title = fmt::format("{}, {}", size, tower);
      panel.x = {.label = "block"};
      panel.y = {.label = "mean |feature|", .log10 = true};
      for (size_t i = 0; i < scales.size(); ++i) {
        for (const char* const when : {"first", "last"}) {
          Series series = DepthSeries(growth, {size, scales[i], tower, "", kOutput}, when);
          series.style = static_cast<int>(i);
          series.dashed = when == std::string_view("first");
          series.label = fmt::format(
              "{}, {}", ScaleText(scales[i]), series.dashed ? "at the start" : "at the end");
          panel.series.push_back(std::move(series));
        }
      }
      figure.panels.push_back(std::move(panel));
    }
  }
  return figure;
}

Series OverrunSeries(const Table& smoothness, const Selection& selection, Forecast forecast) {
  Series series;
  for (size_t r = 0; r < smoothness.rows.size(); ++r) {
    if (!selection.Takes(smoothness, r) || smoothness.Text(r, "steps") != kAfterWarmup ||
        smoothness.Text(r, "forecast") != ToString(forecast)) {
      continue;
    }
    series.x.push_back(smoothness.Number(r, "history"));
    series.y.push_back(std::max(kLeastShare, smoothness.Number(r, "overruns")));
  }
  return series;
}

// Returns the share of overruns for independent maxima of the same distribution: the newest of
// history + 1 maxima would be the largest as often as any other.
Series IndependentSeries(const Table& smoothness) {
  Series series;
  series.label = "1 / (history + 1)";
  series.style = kIndependentStyle;
  series.dashed = true;
  series.markers = false;
  for (const std::string& history : Distinct(smoothness, "history")) {
    series.x.push_back(std::stod(history));
    series.y.push_back(1 / (series.x.back() + 1));
  }
  return series;
}

Figure OverrunFigure(const Table& smoothness) {
  Figure figure{"feature-overruns",
                "Steps whose maximum is above the forecast from previous steps",
                2,
                {},
                "smoothness.csv"};
  const std::string tower = Distinct(smoothness, "tower").front();
  for (const std::string& size : Distinct(smoothness, "size")) {
    for (const std::string& scale : Distinct(smoothness, "layer_scale")) {
      for (const Forecast forecast : kForecasts) {
        Panel panel;
        int style = 0;
        panel.title = fmt::format("{}, {}: {} of the history",
                                  size,
                                  ScaleText(scale),
                                  forecast == Forecast::kMax ? "largest" : "mean");
        panel.x = {.label = "history, steps", .log2 = true};
        panel.y = {.label = "share of the steps", .log10 = true, .low = kLeastShare, .high = 1};
        if (forecast == Forecast::kMax) panel.series.push_back(IndependentSeries(smoothness));
        for (const BlockTensor& tensor : BlockTensors()) {
          if (!tensor.operand) continue;
          Series series =
              OverrunSeries(smoothness, {size, scale, tower, "", tensor.name}, forecast);
          series.style = style++;
          series.label = std::string(tensor.name);
          panel.series.push_back(std::move(series));
        }
        figure.panels.push_back(std::move(panel));
      }
    }
  }
  return figure;
}

}  // namespace

std::vector<Figure> Figures(const Settings&, const Tables& tables) {
  const Table& features = tables.at(std::string(kFeaturesTable));
  return {StatisticsFigure(features),
          GrowthFigure(features),
          DepthFigure(tables.at(std::string(kGrowthTable))),
          OverrunFigure(tables.at(std::string(kSmoothnessTable)))};
}

}  // namespace numsim::experiments::feature_statistics
