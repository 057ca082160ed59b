// The figures of `fp8-interventions`: losses, feature magnitudes, the ladder, underflow.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/distinct.h"
#include "experiments/shared/training.h"

namespace numsim::experiments::fp8_interventions {
namespace {

const Table& Of(const Tables& tables, std::string_view name) {
  return tables.at(std::string(name));
}

// Returns a function that is true for the rows of an intervention in a format.
std::function<bool(size_t)> RowsWhere(const Table& table,
                                      const std::string& intervention,
                                      const std::string& format) {
  return [&table, intervention, format](size_t r) {
    return table.Text(r, "intervention") == intervention && table.Text(r, "format") == format;
  };
}

// Returns the formats of a table except bf16, as --formats writes them.
std::vector<std::string> LowFormats(const Table& table) {
  std::vector<std::string> formats = Distinct(table, "format");
  std::erase(formats, kBaseline.Text());
  return formats;
}

// Returns an axis from the smallest loss of all runs to the largest loss of bf16, with some room.
Axis LossAxis(const Table& curves) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (size_t r = 0; r < curves.rows.size(); ++r) {
    const double loss = curves.Number(r, "loss");
    if (curves.Text(r, "format") == kBaseline.Text() && std::isfinite(loss)) {
      high = std::max(high, loss);
    }
    if (std::isfinite(loss)) low = std::min(low, loss);
  }
  const double room = 0.05 * (high - low);
  return {.label = "training loss, nats", .low = low - room, .high = high + 2 * room};
}

Panel LossPanel(const Table& curves, const std::string& format) {
  const std::vector<std::string> interventions = Distinct(curves, "intervention");
  Panel panel;
  panel.title = format == kBaseline.Text() ? format : "tensor-wise " + format;
  panel.x = StepAxis(curves);
  panel.y = LossAxis(curves);
  for (size_t i = 0; i < interventions.size(); ++i) {
    Series series = SeriesOverSeeds(curves, "loss", RowsWhere(curves, interventions[i], format), 0);
    series.label = interventions[i];
    series.style = static_cast<int>(i);
    panel.series.push_back(std::move(series));
  }
  if (format == kBaseline.Text()) return panel;
  Series baseline = SeriesOverSeeds(
      curves, "loss", RowsWhere(curves, Intervention{}.Text(), kBaseline.Text()), 0);
  baseline.low.clear();
  baseline.high.clear();
  baseline.label = "bf16, none";
  baseline.style = static_cast<int>(interventions.size());
  baseline.dashed = true;
  panel.series.push_back(std::move(baseline));
  return panel;
}

Figure LossFigure(const Table& curves) {
  Figure figure{"fp8-loss", "Training loss by intervention", 2, {}, "curves.csv"};
  for (const std::string& format : Distinct(curves, "format")) {
    figure.panels.push_back(LossPanel(curves, format));
  }
  return figure;
}

// Returns the tower that the figure shows: that of images if there is one.
std::string TowerOf(const Table& features) {
  const std::vector<std::string> towers = Distinct(features, "tower");
  return std::find(towers.begin(), towers.end(), "image") != towers.end() ? "image" : "text";
}

Panel FeaturePanel(const Table& features, const std::string& format, std::string_view when) {
  const std::vector<std::string> interventions = Distinct(features, "intervention");
  const std::string tower = TowerOf(features);
  Panel panel;
  panel.title = format + ", " + std::string(when) + " of training";
  panel.x = {.label = "block k"};
  panel.y = {.label = "E|x_k|", .log10 = true};
  for (size_t i = 0; i < interventions.size(); ++i) {
    const auto is_of = RowsWhere(features, interventions[i], format);
    StepValues values;  // by block
    for (size_t r = 0; r < features.rows.size(); ++r) {
      if (!is_of(r) || features.Text(r, "when") != when || features.Text(r, "tower") != tower) {
        continue;
      }
      const double value = features.Number(r, "mean_abs");
      if (std::isfinite(value)) values[features.Number(r, "block")].push_back(value);
    }
    Series series = SeriesOverSeeds(values);
    series.label = interventions[i];
    series.style = static_cast<int>(i);
    series.markers = true;
    panel.series.push_back(std::move(series));
  }
  return panel;
}

Figure FeatureFigure(const Table& features) {
  Figure figure{"fp8-features",
                "Mean magnitude of the residual stream after each block, tower of the " +
                    TowerOf(features) + "s",
                2,
                {},
                "features.csv"};
  figure.panels.push_back(FeaturePanel(features, kBaseline.Text(), kStart));
  for (const std::string& format : Distinct(features, "format")) {
    figure.panels.push_back(FeaturePanel(features, format, kEnd));
  }
  return figure;
}

// Returns the gaps of an intervention against the index of the format; failures are drawn at `top`.
Series LadderSeries(const Table& outcomes,
                    const std::vector<std::string>& formats,
                    const std::string& intervention,
                    double top) {
  Series series;
  series.label = intervention;
  for (size_t r = 0; r < outcomes.rows.size(); ++r) {
    if (outcomes.Text(r, "intervention") != intervention) continue;
    const auto at = std::find(formats.begin(), formats.end(), outcomes.Text(r, "format"));
    if (at == formats.end()) continue;
    const std::string& verdict = outcomes.Text(r, "verdict");
    const bool failed = verdict == kDiverged || verdict == kCollapsedVerdict;
    const auto shown = [&](const char* column) {
      return failed ? top : std::min(top, outcomes.Number(r, column));
    };
    series.x.push_back(static_cast<double>(at - formats.begin()) + 1);
    series.y.push_back(shown("gap"));
    series.low.push_back(std::isnan(shown("gap_low")) ? shown("gap") : shown("gap_low"));
    series.high.push_back(std::isnan(shown("gap_high")) ? shown("gap") : shown("gap_high"));
  }
  return series;
}

// Returns a value above every finite gap.
double TopOf(const Table& outcomes) {
  double top = 0.1;
  for (size_t r = 0; r < outcomes.rows.size(); ++r) {
    const double gap = outcomes.Number(r, "gap");
    if (std::isfinite(gap)) top = std::max(top, 1.25 * gap);
  }
  return top;
}

Figure LadderFigure(const Table& outcomes) {
  const std::vector<std::string> formats = LowFormats(outcomes);
  std::string order;
  for (size_t i = 0; i < formats.size(); ++i) {
    order += (i == 0 ? "" : ", ") + std::to_string(i + 1) + " " + formats[i];
  }
  Figure figure{"fp8-ladder",
                "Validation loss minus that of bf16 with the same intervention; at the top: "
                "diverged or collapsed",
                1,
                {},
                "outcomes.csv"};
  Panel panel;
  panel.title = "formats: " + order;
  const double top = TopOf(outcomes);
  panel.x = {.label = "format", .low = 0.5, .high = static_cast<double>(formats.size()) + 0.5};
  panel.y = {.label = "gap, nats"};
  for (const std::string& intervention : Distinct(outcomes, "intervention")) {
    Series series = LadderSeries(outcomes, formats, intervention, top);
    series.style = static_cast<int>(panel.series.size());
    panel.series.push_back(std::move(series));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

Panel UnderflowPanel(const Table& quantised, const std::string& format) {
  constexpr double kLeast = 1e-6;
  Panel panel;
  panel.title = format;
  panel.x = StepAxis(quantised);
  panel.y = {.label = "share of elements stored as zero", .log10 = true, .low = kLeast, .high = 1};
  const std::vector<std::string> operands = Distinct(quantised, "operand");
  const Intervention none, layer_scale{false, false, true};
  for (const Intervention& intervention : {none, layer_scale}) {
    const auto is_of = RowsWhere(quantised, intervention.Text(), format);
    for (size_t i = 0; i < operands.size(); ++i) {
      Series series = SeriesOverSeeds(
          quantised,
          "underflow",
          [&](size_t r) { return is_of(r) && quantised.Text(r, "operand") == operands[i]; },
          kLeast);
      if (series.x.empty()) continue;
      series.label = operands[i] + ", " + intervention.Text();
      series.style = static_cast<int>(i);
      series.dashed = intervention == layer_scale;
      panel.series.push_back(std::move(series));
    }
  }
  return panel;
}

Figure UnderflowFigure(const Table& quantised) {
  Figure figure{
      "fp8-underflow", "Elements that underflow to zero, mean over layers", 2, {}, "quantised.csv"};
  for (const std::string& format : LowFormats(quantised)) {
    figure.panels.push_back(UnderflowPanel(quantised, format));
  }
  return figure;
}

}  // namespace

std::vector<Figure> Figures(const Settings&, const Tables& tables) {
  std::vector<Figure> figures = {LossFigure(Of(tables, kCurvesTable)),
                                 FeatureFigure(Of(tables, kFeaturesTable))};
  if (LowFormats(Of(tables, kOutcomesTable)).empty()) return figures;
  figures.push_back(LadderFigure(Of(tables, kOutcomesTable)));
  figures.push_back(UnderflowFigure(Of(tables, kQuantisedTable)));
  return figures;
}

}  // namespace numsim::experiments::fp8_interventions
