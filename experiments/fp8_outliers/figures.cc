// The figures of `fp8-outliers`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/runner/settings.h"

namespace numsim::experiments::fp8_outliers {
namespace {

std::string TitleOf(const std::string& text) {
  const PlantKind plant = ParsePlant(text);
  if (plant.kind == kNone) return "no outlier";
  const std::string size = text.substr(text.find(':') + 1);
  if (plant.kind == kOnce) return "one token, " + size + " times";
  if (plant.kind == kEvery) return "a token again and again, " + size + " times";
  return "weights that grow, " + size + " times";
}

// Gaps beyond this, in nats, are written in the title: their bars would hide all others.
constexpr double kLargestBar = 0.1;

// Horizontal bars of a column of the arms, a row per recipe.
Panel BarsOf(const Frame& arms, const std::string& plant, const char* column, const char* label) {
  Panel panel;
  panel.title = TitleOf(plant);
  panel.x.label = label;
  Series bars;
  const bool interval = std::string_view(column) == "gap";
  arms.Where("plant", plant).ForEach([&](const Frame& arm) {
    const double factor = interval ? 1000 : 1;  // thousandths of a nat
    const double value = factor * arm.Number(column);
    if (interval && (arm.Text("recipe") == "bf16" || !std::isfinite(value))) return;
    if (interval && arm.Number(column) > kLargestBar) {
      panel.title += fmt::format("; {}: {:.2g} nats", arm.Text("recipe"), arm.Number(column));
      return;
    }
    bars.x.push_back(value);
    if (interval && arm.Number("seeds") > 1) {
      bars.low.push_back(factor * arm.Number("gap_low"));
      bars.high.push_back(factor * arm.Number("gap_high"));
    }
    bars.y.push_back(static_cast<double>(panel.rows.size()));
    panel.rows.push_back(arm.Text("recipe"));
  });
  if (!panel.rows.empty()) panel.series.push_back(std::move(bars));
  return panel;
}

Figure BarFigure(const study::Results& results,
                 const char* name,
                 const char* title,
                 const char* column,
                 const char* label) {
  Figure figure{name, title, 2, {}, "arms.csv"};
  const Frame arms = results.Of(kArmsTable);
  for (const std::string& plant : results.settings.GetList("plants")) {
    Panel panel = BarsOf(arms, plant, column, label);
    if (!panel.rows.empty()) figure.panels.push_back(std::move(panel));
  }
  return figure;
}

// A line per recipe over the sizes of the single outlier.
Panel SizesPanel(const Settings& settings, const Frame& arms, const char* column, numsim::Axis y) {
  Panel panel;
  panel.x = {.label = "size of the outlier over the largest clean value", .log10 = true};
  panel.y = std::move(y);
  std::vector<std::string> plants = PlantsOf(settings, kOnce);
  std::ranges::reverse(plants);
  const bool interval = std::string_view(column) == "gap";
  int style = 0;
  for (const std::string& recipe : settings.GetList("recipes")) {
    if (recipe == "bf16") continue;
    Series line;
    line.label = recipe;
    line.style = style++;
    for (const std::string& plant : plants) {
      arms.Where("plant", plant).Where("recipe", recipe).ForEach([&](const Frame& arm) {
        line.x.push_back(ParsePlant(plant).size);
        line.y.push_back(arm.Number(column));
        if (!interval || !(arm.Number("seeds") > 1)) return;
        line.low.push_back(arm.Number("gap_low"));
        line.high.push_back(arm.Number("gap_high"));
      });
    }
    if (!line.x.empty()) panel.series.push_back(std::move(line));
  }
  return panel;
}

constexpr size_t kSizesOfACurve = 3;
constexpr double kLeastGap = 1e-3;  // nats, the start of the axis; less is noise of ten seeds

// Which recipe survives which outlier.
Figure SizesFigure(const study::Results& results) {
  const Settings& settings = results.settings;
  Figure figure{"outliers-sizes", "One outlier of growing size", 2, {}, "arms.csv"};
  if (PlantsOf(settings, kOnce).size() < kSizesOfACurve) return figure;
  const Frame arms = results.Of(kArmsTable);
  figure.panels = {
      SizesPanel(settings, arms, "bad_steps", {.label = "bad steps per run"}),
      SizesPanel(settings, arms, "gap", {.label = "loss minus that of bf16, nats", .log10 = true})};
  Panel& gaps = figure.panels.back();
  gaps.y.low = gaps.y.high = kLeastGap;
  for (const Series& line : gaps.series) {
    for (const double gap : line.y) {
      if (std::isfinite(gap)) gaps.y.high = std::max(gaps.y.high, 1.5 * gap);
    }
  }
  return figure;
}

Panel TracePanel(const Frame& trace, const std::string& plant, const char* column, numsim::Axis y) {
  Panel panel;
  panel.title = TitleOf(plant);
  panel.x.label = "step after the outlier";
  panel.y = std::move(y);
  int style = 0;
  for (const char* recipe : {"te-max", "te-recent", "te-current", "smooth", "smooth-token"}) {
    const Frame rows = trace.Where("plant", plant).Where("recipe", std::string(recipe));
    Series line;
    line.label = recipe;
    line.style = style++;
    line.markers = false;
    rows.ForEach([&](const Frame& row) {
      line.x.push_back(row.Number("step"));
      line.y.push_back(100 * row.Number(column));
    });
    if (!line.x.empty()) panel.series.push_back(std::move(line));
  }
  return panel;
}

Figure TraceFigure(const study::Results& results) {
  Figure figure{"outliers-trace",
                "Input of w3, worst block, one seed: elements that become zero",
                2,
                {},
                "trace.csv"};
  const Frame trace = results.Of(kTraceTable);
  for (const std::string& plant : results.settings.GetList("plants")) {
    Panel panel = TracePanel(trace, plant, "underflow", {.label = "underflow, %"});
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace

study::Named<std::function<Figure(const study::Results&)>> Figures() {
  return {{"loss",
           [](const study::Results& results) {
             return BarFigure(results,
                              "outliers-loss",
                              "Final loss under outliers: mean and 95 % interval",
                              "gap",
                              "final loss minus that of bf16, 10^{-3} nats");
           }},
          {"steps",
           [](const study::Results& results) {
             return BarFigure(results,
                              "outliers-steps",
                              "Steps in which the quantiser fails",
                              "bad_steps",
                              "bad steps per run");
           }},
          {"trace", TraceFigure},
          {"sizes", SizesFigure}};
}

}  // namespace numsim::experiments::fp8_outliers
