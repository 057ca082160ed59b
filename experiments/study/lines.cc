#include "experiments/study/lines.h"

#include <utility>

#include "experiments/study/assemble.h"
#include "experiments/study/selected_rows.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {
namespace {

// Returns a line through the means of x and y over the rows of each value of a column.
Series LineOfMeans(const Frame& rows, const Lines& lines) {
  Series series;
  for (const Frame& group : rows.By({lines.by})) {
    series.x.push_back(group.Mean(lines.x));
    series.y.push_back(group.Mean(lines.y));
  }
  return series;
}

// Returns a line of means over seeds, with the intervals of the table as its band.
Series LineWithIntervals(const Frame& rows, const Lines& lines) {
  Series series = Line(rows, lines.x, lines.y);
  const Series low = Line(rows, lines.x, lines.y + "_low");
  const Series high = Line(rows, lines.x, lines.y + "_high");
  series.low.clear();
  series.high.clear();
  if (low.x != series.x || high.x != series.x) return series;  // an interval is not known
  series.low = low.low.empty() ? low.y : low.low;
  series.high = high.high.empty() ? high.y : high.high;
  return series;
}

Series LineOf(const Frame& rows, const Lines& lines) {
  if (!lines.by.empty()) return LineOfMeans(rows, lines);
  return lines.interval ? LineWithIntervals(rows, lines) : Line(rows, lines.x, lines.y);
}

// Adds a column that is drawn dotted to the last line of a panel. The first has the label, for all colours.
void AddDotted(const Frame& rows, const Lines& lines, Panel& panel) {
  const bool first = panel.series.size() == 1;
  Series series = Line(rows, lines.x, lines.dotted);
  series.low.clear();
  series.high.clear();
  series.label = first ? lines.dotted_label : "";
  series.style = panel.series.back().style;
  series.dashed = true;
  series.markers = false;
  panel.series.push_back(std::move(series));
}

Panel PanelOf(const Results& results,
              const Lines& lines,
              const Frame& all,
              const std::string& value) {
  Panel panel;
  const Frame shown = all.Where(lines.panel, value);
  panel.title = lines.panel_title ? lines.panel_title(value, shown) : value;
  panel.x =
      lines.to_last ? AxisOf(all, lines.x, lines.x_label) : numsim::Axis{.label = lines.x_label};
  panel.x.log2 = lines.log2_x;
  panel.y = {.label = lines.y_label, .log10 = lines.log10};
  int style = 0;
  for (const std::string& name : all.Distinct(lines.line)) {
    const Frame rows = shown.Where(lines.line, name);
    Series series = LineOf(rows, lines);
    series.label = name;
    series.style = style++;
    series.markers = lines.markers;
    panel.series.push_back(std::move(series));
    if (!lines.dotted.empty()) AddDotted(rows, lines, panel);
  }
  if (lines.complete) lines.complete(results, all, value, panel);
  return panel;
}

}  // namespace

void AddSeries(Series series, std::string label, Panel& panel) {
  series.label = std::move(label);
  series.style = static_cast<int>(panel.series.size());
  panel.series.push_back(std::move(series));
}

std::function<Figure(const Results&)> Draw(Lines lines) {
  return [lines = std::move(lines)](const Results& results) {
    Figure figure{lines.name, "", lines.columns, {}, lines.table + ".csv"};
    figure.same_y = lines.same_y;
    const Frame table = RowsWhere(results, results.Of(lines.table), lines.where);
    const Frame all = lines.rows ? lines.rows(results, table) : table;
    if (all.Empty()) return figure;
    figure.title = Fill(lines.title, [&](const std::string& column) { return all.Text(column); });
    for (const std::string& value : all.Distinct(lines.panel)) {
      figure.panels.push_back(PanelOf(results, lines, all, value));
    }
    return figure;
  };
}

}  // namespace numsim::experiments::study
