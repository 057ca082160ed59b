#include "experiments/study/dots.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/study/assemble.h"
#include "experiments/study/lines.h"
#include "experiments/study/selected_rows.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {
namespace {

bool HasColumn(const Table& table, const std::string& name) {
  return std::ranges::count(table.columns, name) > 0;
}

// Returns the rows of arms that have the centre's values on the axes that the figure does not show.
Frame AtCentre(const Results& results, const Dots& dots) {
  const Table& table = results.tables.at(dots.table);
  Frame rows = RowsWhere(results, table, dots.where);
  if (!results.study.centre) return rows;
  const Arm centre = results.study.centre(results.settings);
  for (size_t i = 0; i < centre.size(); ++i) {
    const std::string& axis = results.study.axes[i].name;
    const bool shown = axis == dots.along || axis == dots.line || axis == dots.panel;
    if (!shown && HasColumn(table, axis)) rows = rows.Where(axis, centre[i]);
  }
  return rows;
}

// Returns the values of a column; one, "", without one.
std::vector<std::string> ValuesOf(const Frame& rows, const std::string& column) {
  return column.empty() ? std::vector<std::string>{""} : rows.Distinct(column);
}

Frame RowsOf(const Frame& rows, const std::string& column, const std::string& value) {
  return column.empty() ? rows : rows.Where(column, value);
}

// Returns the dots of some rows, each in the row of its value.
Series SeriesOf(const Dots& dots,
                const Frame& rows,
                const std::vector<std::string>& values,
                bool interval) {
  Series series;
  rows.ForEach([&](const Frame& row) {
    const auto at = std::ranges::find(values, row.Text(dots.along));
    series.x.push_back(row.Number(dots.x));
    series.y.push_back(static_cast<double>(at - values.begin()));
    if (!interval) return;
    series.low.push_back(row.Number(dots.x + "_low"));
    series.high.push_back(row.Number(dots.x + "_high"));
  });
  return series;
}

Panel PanelOf(const Dots& dots, const Frame& all, const std::string& value, bool interval) {
  Panel panel;
  panel.title = dots.panel_title ? dots.panel_title(value, RowsOf(all, dots.panel, value)) : value;
  panel.x = {.label = dots.x_label, .log10 = dots.log10};
  panel.y.label = dots.y_label;
  panel.rows = all.Distinct(dots.along);
  panel.dots = true;
  const Frame rows = RowsOf(all, dots.panel, value);
  for (const std::string& line : ValuesOf(all, dots.line)) {
    AddSeries(SeriesOf(dots, RowsOf(rows, dots.line, line), panel.rows, interval), line, panel);
  }
  return panel;
}

}  // namespace

std::function<Figure(const Results&)> Draw(Dots dots) {
  return [dots = std::move(dots)](const Results& results) {
    Figure figure{dots.name, "", dots.columns, {}, dots.table + ".csv"};
    const Frame all = AtCentre(results, dots);
    if (all.Empty()) return figure;
    figure.title = Fill(dots.title, [&](const std::string& column) { return all.Text(column); });
    const Table& table = results.tables.at(dots.table);
    const bool interval = HasColumn(table, dots.x + "_low") && HasColumn(table, dots.x + "_high");
    for (const std::string& value : ValuesOf(all, dots.panel)) {
      figure.panels.push_back(PanelOf(dots, all, value, interval));
    }
    return figure;
  };
}

}  // namespace numsim::experiments::study
