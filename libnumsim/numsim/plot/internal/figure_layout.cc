#include <algorithm>

#include "numsim/base/require.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

// In inches, for sans-serif text of 8 pt.
constexpr double kColumnWidth = 3.4;  // a text column of a two-column paper
constexpr double kPlotHeight = 1.95;
constexpr double kLeft = 0.68;  // tick labels and axis label
constexpr double kRight = 0.14;
constexpr double kBelow = 0.45;
constexpr double kAbove = 0.12;
constexpr double kLine = 0.16;
constexpr double kCharacter = 0.062;    // mean width of a character, estimated generously
constexpr double kLegendSample = 0.62;  // line, marker and gaps of a legend entry
constexpr double kLegendPadding = 0.10;
constexpr double kBarRow = 0.15;      // height of a row of bars
constexpr double kRowNameRoom = 0.3;  // next to the row names, for tics and axis label

// Returns the number of characters of UTF-8 text.
size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

int LegendColumns(const std::vector<LegendEntry>& legend, double width) {
  if (legend.empty()) return 0;
  size_t longest = 0;
  for (const LegendEntry& entry : legend) longest = std::max(longest, Characters(entry.label));
  const double entry_width = kLegendSample + kCharacter * static_cast<double>(longest);
  const int count = static_cast<int>(legend.size());
  const int fitting = std::clamp(static_cast<int>(width / entry_width), 1, count);
  const int rows = (count + fitting - 1) / fitting;
  return (count + rows - 1) / rows;  // rows of nearly equal length
}

// Returns the width that the row names of a panel of bars need beyond the left margin of other
// panels.
double RoomForNames(const Panel& panel) {
  size_t longest = 0;
  for (const std::string& name : panel.rows) longest = std::max(longest, Characters(name));
  return std::max(kRowNameRoom + kCharacter * static_cast<double>(longest) - kLeft, 0.0);
}

// Returns the left edge of each column of panels, and the right edge of the last column.
std::vector<double> ColumnEdges(const Figure& figure, size_t columns) {
  std::vector<double> edges = {0};
  for (size_t c = 0; c < columns; ++c) {
    double room = 0;
    for (size_t i = c; i < figure.panels.size(); i += columns) {
      room = std::max(room, RoomForNames(figure.panels[i]));
    }
    edges.push_back(edges.back() + kColumnWidth + room);
  }
  return edges;
}

double PlotHeight(const Figure& figure) {
  size_t rows = 0;
  for (const Panel& panel : figure.panels) rows = std::max(rows, panel.rows.size());
  return std::max(kPlotHeight, kBarRow * static_cast<double>(rows));
}

// Returns the title of a panel and, on lines of its own, what the panel does not show.
std::vector<std::string> TitleLines(const Panel& panel, size_t columns) {
  std::vector<std::string> lines = WrapText(panel.title, columns);
  for (std::string& line : WrapText(BeyondText(panel), columns)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::vector<LegendEntry> LegendOf(const Figure& figure) {
  std::vector<LegendEntry> legend;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      if (series.label.empty()) continue;
      const bool bars = !panel.rows.empty();
      const LegendEntry entry =
          bars ? LegendEntry{series.label, series.style, false, false, true}
               : LegendEntry{series.label, series.style, series.dashed, series.markers};
      if (std::find(legend.begin(), legend.end(), entry) == legend.end()) legend.push_back(entry);
    }
  }
  return legend;
}

std::vector<std::string> WrapText(std::string_view text, size_t columns) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (word.empty()) continue;
    if (lines.empty() || Characters(lines.back()) + 1 + Characters(word) > columns) {
      lines.emplace_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
  }
  return lines;
}

FigureLayout LayOut(const Figure& figure) {
  NUMSIM_REQUIRE(!figure.panels.empty() && figure.columns >= 1,
                 "a figure of {} panels in {} columns, expected at least one of each",
                 figure.panels.size(),
                 figure.columns);
  const size_t columns = std::min<size_t>(figure.columns, figure.panels.size());
  const size_t rows = (figure.panels.size() + columns - 1) / columns;
  FigureLayout layout;
  const std::vector<double> edges = ColumnEdges(figure, columns);
  layout.width_inches = edges.back();
  const auto fitting = [](double width) { return static_cast<size_t>(width / kCharacter); };
  layout.title_lines = WrapText(figure.title, fitting(layout.width_inches - 0.4));
  size_t panel_title_lines = 0;
  for (const Panel& panel : figure.panels) {
    layout.panel_title_lines.push_back(TitleLines(panel, fitting(kColumnWidth - kLeft)));
    panel_title_lines = std::max(panel_title_lines, layout.panel_title_lines.back().size());
  }

  const auto strip = [](size_t lines) { return lines == 0 ? 0 : kLine * lines + kLegendPadding; };
  const std::vector<LegendEntry> legend = LegendOf(figure);
  layout.legend_columns = LegendColumns(legend, layout.width_inches - 0.2);
  const size_t legend_rows =
      legend.empty() ? 0 : (legend.size() + layout.legend_columns - 1) / layout.legend_columns;
  const double legend_height = strip(legend_rows);
  const double title_height = strip(layout.title_lines.size());
  const double above = kAbove + kLine * static_cast<double>(panel_title_lines);
  const double row_height = above + PlotHeight(figure) + kBelow;
  layout.height_inches = legend_height + row_height * static_cast<double>(rows) + title_height;

  const double height = layout.height_inches;
  layout.title_top = 1 - kLine / height;
  layout.legend = {0, 1, 0, legend_height / height};
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    const double right = edges[i % columns + 1];
    const size_t row = i / columns;
    const double top = height - title_height - row_height * static_cast<double>(row);
    layout.panels.push_back({(right - kColumnWidth + kLeft) / layout.width_inches,
                             (right - kRight) / layout.width_inches,
                             (top - row_height + kBelow) / height,
                             (top - above) / height});
  }
  return layout;
}

}  // namespace numsim
