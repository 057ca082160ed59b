// The figures of `fp8-interventions`: losses, feature magnitudes, the ladder, underflow.
#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::fp8_interventions {
namespace {

// Returns the formats of a table except bf16, as --formats writes them.
std::vector<std::string> LowFormats(const Frame& frame) {
  std::vector<std::string> formats = frame.Distinct("format");
  std::erase(formats, kBaseline.Text());
  return formats;
}

// Adds a series with the next style to a panel.
void AddSeries(Series series, std::string label, Panel& panel) {
  series.label = std::move(label);
  series.style = static_cast<int>(panel.series.size());
  panel.series.push_back(std::move(series));
}

// Returns an axis from the smallest loss of all runs to the largest loss of bf16, with some room.
Axis LossAxis(const Frame& curves) {
  double low = kInfinity, high = 0;
  curves.ForEach([&](const Frame& row) {
    const double loss = row.Number("loss");
    if (!std::isfinite(loss)) return;
    low = std::min(low, loss);
    if (row.Text("format") == kBaseline.Text()) high = std::max(high, loss);
  });
  const double room = 0.05 * (high - low);
  return {.label = "training loss, nats", .low = low - room, .high = high + 2 * room};
}

Panel LossPanel(const Frame& curves, const std::string& format) {
  Panel panel;
  panel.title = format == kBaseline.Text() ? format : "tensor-wise " + format;
  panel.x = AxisOf(curves, "step", "step");
  panel.y = LossAxis(curves);
  for (const std::string& intervention : curves.Distinct("intervention")) {
    AddSeries(Line(Select(curves, intervention, format), "step", "loss"), intervention, panel);
  }
  if (format == kBaseline.Text()) return panel;
  Series baseline = Line(Select(curves, Intervention{}.Text(), kBaseline.Text()), "step", "loss");
  baseline.low.clear();
  baseline.high.clear();
  baseline.dashed = true;
  AddSeries(std::move(baseline), "bf16, none", panel);
  return panel;
}

Figure LossFigure(const Frame& curves) {
  Figure figure{"fp8-loss", "Training loss by intervention", 2, {}, "curves.csv"};
  for (const std::string& format : curves.Distinct("format")) {
    figure.panels.push_back(LossPanel(curves, format));
  }
  return figure;
}

// `rows` are those of one moment.
Panel FeaturePanel(const Frame& rows, const std::string& format, const char* moment) {
  Panel panel;
  panel.title = format + ", " + moment + " of training";
  panel.x = {.label = "block k"};
  panel.y = {.label = "E|x_k|", .log10 = true};
  for (const std::string& intervention : rows.Distinct("intervention")) {
    Series series = Line(Select(rows, intervention, format), "block", "mean_abs");
    series.markers = true;
    AddSeries(std::move(series), intervention, panel);
  }
  return panel;
}

Figure FeatureFigure(const Frame& features) {
  Figure figure{"fp8-features",
                "Mean magnitude of the residual stream after each block, tower of the " +
                    TowerOf(features) + "s",
                2,
                {},
                "features.csv"};
  const Frame tower = features.Where("tower", TowerOf(features));
  const Frame last = LastRecords(tower);
  figure.panels.push_back(FeaturePanel(tower.Where("step", 0), kBaseline.Text(), "start"));
  for (const std::string& format : features.Distinct("format")) {
    figure.panels.push_back(FeaturePanel(last, format, "end"));
  }
  return figure;
}

// Returns E|x_k| after the last block against the validation loss, both as means over seeds, so that
// trainings that learn at different rates can be compared.
Figure ProgressFigure(const Frame& features) {
  const Frame tower = AfterLastBlock(features.Where("tower", TowerOf(features)));
  Figure figure{
      .name = "fp8-progress",
      .title =
          "Mean magnitude after the last block as the loss falls (from right to left), tower "
          "of the " +
          TowerOf(features) + "s",
      .source_csv = "features.csv"};
  Panel& panel = figure.panels.emplace_back();
  panel.title = kBaseline.Text();
  panel.x = {.label = "validation loss, nats"};
  panel.y = {.label = "E|x_k|", .log10 = true};
  for (const std::string& intervention : tower.Distinct("intervention")) {
    const Frame rows = Select(tower, intervention, kBaseline.Text());
    Series series;
    for (const Frame& step : rows.By({"step"})) {
      series.x.push_back(step.Mean("valid_loss"));
      series.y.push_back(step.Mean("mean_abs_rest"));
    }
    series.markers = true;
    if (!series.x.empty()) AddSeries(std::move(series), intervention, panel);
  }
  return figure;
}

// Returns the gaps of an intervention against the index of the format; infinite if a seed diverged.
Series LadderSeries(const Frame& rows, const std::vector<std::string>& formats) {
  Series series;
  rows.ForEach([&](const Frame& row) {
    const auto at = std::find(formats.begin(), formats.end(), row.Text("format"));
    if (at == formats.end()) return;
    const bool diverged = row.Number("diverged") > 0;
    series.x.push_back(static_cast<double>(at - formats.begin()) + 1);
    series.y.push_back(diverged ? kInfinity : row.Number("gap"));
    series.low.push_back(row.Number("gap_low"));
    series.high.push_back(row.Number("gap_high"));
  });
  return series;
}

Figure LadderFigure(const Frame& outcomes) {
  const std::vector<std::string> formats = LowFormats(outcomes);
  std::string order;
  for (size_t i = 0; i < formats.size(); ++i) {
    order += (i == 0 ? "" : ", ") + std::to_string(i + 1) + " " + formats[i];
  }
  Figure figure{
      .name = "fp8-ladder",
      .title = "Validation loss minus that of bf16 with the same intervention; infinite: diverged",
      .source_csv = "outcomes.csv"};
  Panel& panel = figure.panels.emplace_back();
  panel.title = "formats: " + order;
  panel.x = {.label = "format", .low = 0.5, .high = static_cast<double>(formats.size()) + 0.5};
  panel.y = {.label = "gap, nats"};
  for (const Frame& rows : outcomes.By({"intervention"})) {
    AddSeries(LadderSeries(rows, formats), rows.Text("intervention"), panel);
  }
  return figure;
}

Panel UnderflowPanel(const Frame& quantized, const std::string& format) {
  constexpr double kLeast = 1e-6;
  Panel panel;
  panel.title = format;
  panel.x = AxisOf(quantized, "step", "step");
  panel.y = {.label = "share of elements stored as zero", .log10 = true, .low = kLeast, .high = 1};
  for (const Intervention& intervention : {Intervention{}, Intervention{false, false, true}}) {
    int style = 0;
    for (const std::string& operand : quantized.Distinct("operand")) {
      const Frame rows = Select(quantized, intervention.Text(), format).Where("operand", operand);
      Series series = Line(rows, "step", "underflow");
      series.style = style++;
      series.dashed = intervention.layer_scale;
      series.label = operand + ", " + intervention.Text();
      if (!series.x.empty()) panel.series.push_back(std::move(series));
    }
  }
  return panel;
}

Figure UnderflowFigure(const Frame& quantized) {
  Figure figure{
      "fp8-underflow", "Elements that underflow to zero, mean over layers", 2, {}, "quantised.csv"};
  for (const std::string& format : LowFormats(quantized)) {
    figure.panels.push_back(UnderflowPanel(quantized, format));
  }
  return figure;
}

}  // namespace

std::string TowerOf(const Frame& features) {
  return features.Where("tower", "image").Empty() ? "text" : "image";
}

std::vector<Figure> Figures(const Settings&, const Tables& tables) {
  const auto of = [&](std::string_view name) { return Frame(tables.at(std::string(name))); };
  std::vector<Figure> figures = {LossFigure(of(kCurvesTable)),
                                 FeatureFigure(of(kFeaturesTable)),
                                 ProgressFigure(of(kFeaturesTable))};
  if (LowFormats(of(kOutcomesTable)).empty()) return figures;
  figures.push_back(LadderFigure(of(kOutcomesTable)));
  figures.push_back(UnderflowFigure(of(kQuantizedTable)));
  return figures;
}

}  // namespace numsim::experiments::fp8_interventions
