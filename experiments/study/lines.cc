#include "experiments/study/lines.h"

#include <utility>

#include "experiments/study/assemble.h"
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

Panel PanelOf(const Results& results,
              const Lines& lines,
              const Frame& all,
              const std::string& value) {
  Panel panel;
  panel.title = lines.panel_title ? lines.panel_title(value) : value;
  panel.x =
      lines.to_last ? AxisOf(all, lines.x, lines.x_label) : numsim::Axis{.label = lines.x_label};
  panel.y = {.label = lines.y_label, .log10 = lines.log10};
  for (const std::string& name : all.Distinct(lines.line)) {
    const Frame rows = all.Where(lines.line, name).Where(lines.panel, value);
    Series series = lines.by.empty() ? Line(rows, lines.x, lines.y) : LineOfMeans(rows, lines);
    series.markers = lines.markers;
    AddSeries(std::move(series), name, panel);
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
    const Frame table = results.Of(lines.table);
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
