// The panels that a style shows, and the legend of their series.
#include <algorithm>

#include "numsim/base/error.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

// Returns true if a curve of the series has a line: two points in a row that can be drawn.
bool HasLine(const Panel& panel, const Series& series) {
  const auto drawable = [&](size_t i) { return IsDrawablePoint(panel, series, i); };
  for (size_t i = 1; i < std::min(series.x.size(), series.y.size()); ++i) {
    if (drawable(i - 1) && drawable(i)) return true;
  }
  return false;
}

// Gives the panels without a range of y one that holds the values of all of them.
void ShareY(std::vector<Panel>& panels) {
  const auto free = [](const Panel& panel) { return panel.y.low == panel.y.high; };
  Extent all;
  for (const Panel& panel : panels) {
    const Extent extent = ExtentOfY(panel);
    if (extent.empty || !free(panel)) continue;
    all.Include(extent.low);
    all.Include(extent.high);
  }
  if (all.empty) return;
  for (Panel& panel : panels) {
    if (!free(panel)) continue;
    const Extent shown = ShownRange(panel.y, all);
    panel.y.low = shown.low;
    panel.y.high = shown.high;
  }
}

}  // namespace

std::vector<LegendEntry> LegendOf(const Figure& figure) {
  std::vector<LegendEntry> legend;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      if (series.label.empty()) continue;
      LegendEntry entry{series.label, series.style, series.dashed, series.markers};
      entry.line = !series.markers || HasLine(panel, series);
      if (!panel.rows.empty()) {
        entry = {series.label, series.style, false, panel.dots, !panel.dots, !panel.dots};
      }
      const auto found = std::find_if(legend.begin(), legend.end(), [&](LegendEntry other) {
        other.line = entry.line;
        return other == entry;
      });
      if (found == legend.end()) {
        legend.push_back(entry);
      } else {
        found->line |= entry.line;
      }
    }
  }
  return legend;
}

Figure Arranged(const Figure& figure, const FigureStyle& style) {
  Figure result = figure;
  if (!style.panels.empty()) result.panels.clear();
  for (const size_t number : style.panels) {
    if (number < 1 || number > figure.panels.size()) {
      throw Error::Format("figure {}: has no panel {}; expected 1 to {}",
                          figure.name,
                          number,
                          figure.panels.size());
    }
    result.panels.push_back(figure.panels[number - 1]);
  }
  if (style.width > 0) {
    const double legible = style.width / (kLegibleColumn * style.font / kFont);
    result.columns = std::clamp(static_cast<int>(legible), 1, std::max(figure.columns, 1));
  }
  if (figure.same_y) ShareY(result.panels);
  return result;
}

}  // namespace numsim
