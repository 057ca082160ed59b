// The figures of `moment-formats` about epsilon: the gap against epsilon, and a phase diagram of
// epsilon and learning rate with the predicted boundary.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::moment_formats {
namespace {

constexpr double kLargestGap = 0.5;  // the end of the axis; a panel names what lies beyond

// Returns the pairs whose m is exact, if there are any: there only v differs.
Frame OnlyV(const Frame& frame) {
  const Frame rows = frame.Where("m", kBaseline.m).Where([](const Frame& row) {
    return row.Text("v") != kBaseline.v;
  });
  return rows.Empty() ? frame : rows;
}

Panel EpsilonPanel(const Frame& rows, std::map<std::string, int>& styles) {
  Panel panel;
  panel.title = "updates from " + rows.Text("update_from") + " moments";
  panel.x = {.label = "epsilon", .log10 = true};
  panel.y = {.label = "gap to fp32, nats per token", .low = -0.05, .high = 1.05 * kLargestGap};
  // Pairs stand beside each other, with bars: an interval as wide as the axis would hide the others.
  const std::vector<Frame> pairs = rows.By({"m", "v"});
  double place = -0.5 * static_cast<double>(pairs.size() - 1);
  for (const Frame& pair : pairs) {
    const double aside = Exp(0.12 * place++);
    Series series;
    series.error_bars = true;
    series.label = "v in " + pair.Text("v");
    series.style = styles.emplace(series.label, static_cast<int>(styles.size())).first->second;
    pair.ForEach([&](const Frame& row) {
      series.x.push_back(aside * row.Number("epsilon"));
      series.y.push_back(row.Number("gap"));
      series.low.push_back(row.Number("gap_low"));
      series.high.push_back(row.Number("gap_high"));
    });
    for (const double gap : series.y) {
      if (std::isfinite(gap)) panel.y.low = std::min(panel.y.low, gap - 0.02);
    }
    if (pair.Number("seeds") < 2) {
      series.low.clear();
      series.high.clear();
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

// Returns the phase of an arm: its gap against the margin, by its interval.
std::string PhaseOf(const Frame& row, double margin) {
  if (row.Number("diverged") > 0) return "diverges";
  if (row.Number("gap_low") > margin) return "behind fp32";
  if (row.Number("gap_high") < margin) return "not behind";
  return "undecided";
}

Panel PhasePanel(const Frame& rows, double margin) {
  Panel panel;
  panel.title = fmt::format("v in {}, {}", rows.Text("v"), rows.Text("update_from"));
  panel.x = {.label = "epsilon", .log10 = true};
  panel.y = {.label = "learning rate", .log10 = true};
  int style = 0;
  for (const char* const phase : {"not behind", "undecided", "behind fp32", "diverges"}) {
    Series series;
    series.label = phase;
    series.style = style++;
    rows.ForEach([&](const Frame& row) {
      if (PhaseOf(row, margin) != phase) return;
      // A point that is not finite keeps a line from joining two points.
      series.x.insert(series.x.end(), {row.Number("epsilon"), kNaN});
      series.y.insert(series.y.end(), {row.Number("lr"), kNaN});
    });
    if (!series.x.empty()) panel.series.push_back(std::move(series));
  }
  // The prediction hardly depends on the epsilon of the fp32 run; show that of the largest.
  Series boundary;
  boundary.label = "predicted boundary";
  boundary.style = 7;
  boundary.dashed = true;
  boundary.markers = false;
  const std::string epsilon = rows.Distinct("epsilon").back();
  rows.Where("epsilon", epsilon).ForEach([&](const Frame& row) {
    if (!(row.Number("predicted_epsilon") > 0)) return;
    boundary.x.push_back(row.Number("predicted_epsilon"));
    boundary.y.push_back(row.Number("lr"));
  });
  if (!boundary.x.empty()) panel.series.push_back(std::move(boundary));
  return panel;
}

// Returns whether there is something to compare.
bool HasSeveral(const Frame& rows) {
  return rows.Distinct("epsilon").size() >= 2 && rows.Distinct("v").size() >= 2;
}

}  // namespace

Figure EpsilonFigure(const Results& results) {
  Figure figure{
      "moment-epsilon", "Gap to fp32, each at its best learning rate", 2, {}, "pairs.csv"};
  const Frame pairs = results.Of("pairs");
  if (!HasSeveral(pairs)) return figure;
  std::map<std::string, int> styles;
  for (const Frame& update : OnlyV(pairs).By({"update_from"})) {
    figure.panels.push_back(EpsilonPanel(update, styles));
  }
  return figure;
}

Figure PhaseFigure(const Results& results) {
  const Frame phases = results.Of("phases");
  if (!HasSeveral(phases) || phases.Distinct("lr").size() < 2) return {};
  const double margin = results.study.common.margin.At(ParametersOf(results));
  Figure figure{
      "moment-phases",
      fmt::format("Gap to fp32 at the same epsilon and learning rate, margin {:g}", margin),
      2,
      {},
      "phases.csv"};
  for (const Frame& rows : OnlyV(phases).By({"v", "update_from"})) {
    figure.panels.push_back(PhasePanel(rows, margin));
  }
  return figure;
}

}  // namespace numsim::experiments::moment_formats
