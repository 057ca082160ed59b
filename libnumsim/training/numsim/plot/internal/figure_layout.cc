#include <algorithm>
#include <cmath>
#include <iterator>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/plot/internal/gnuplot_script.h"

namespace numsim {
namespace {

// In inches, for text of kFont points.
constexpr double kColumnWidth = 3.4;  // a text column of a two-column paper
constexpr double kPlotHeight = 1.95;
constexpr double kLeft = 0.68;  // tick labels and axis label
constexpr double kRight = 0.14;
constexpr double kPlotWidth = kColumnWidth - kLeft - kRight;
constexpr double kLeastPlotWidth = 0.8;
constexpr double kBelow = 0.45;
constexpr double kAbove = 0.12;
constexpr double kLine = 0.16;
constexpr double kCharacter = 0.062;    // mean width of a character, estimated generously
constexpr double kTic = 0.12;           // a tic and the gaps beside its label
constexpr double kLegendSample = 0.62;  // line, marker and gaps of a legend entry
constexpr double kLegendPadding = 0.10;
constexpr double kBarRow = 0.15;      // height of a row of bars
constexpr double kRowNameRoom = 0.3;  // next to the row names, for tics and axis label
constexpr double kNamesShare = 0.4;   // of a column of a given width, for the names of bars

// The width of a page, 0 if it follows from the panels, and the sizes of its text.
struct Page {
  double width;
  double scale;  // of the text

  double Inches(double at_kFont) const { return scale * at_kFont; }
  double Text(double characters) const { return Inches(kCharacter) * characters; }
  size_t Fitting(double inches) const {
    return static_cast<size_t>(std::max(inches, 0.0) / Inches(kCharacter));
  }
};

// Returns the number of characters of the longest line.
size_t Longest(const TextLines& lines) {
  size_t longest = 0;
  for (const std::string& line : lines) longest = std::max(longest, Characters(line));
  return longest;
}

int LegendColumns(const std::vector<LegendEntry>& legend, double width, const Page& page) {
  if (legend.empty()) return 0;
  size_t longest = 0;
  for (const LegendEntry& entry : legend) longest = std::max(longest, Characters(entry.label));
  const double entry_width = page.Inches(kLegendSample) + page.Text(static_cast<double>(longest));
  const int count = static_cast<int>(legend.size());
  const int fitting = std::clamp(static_cast<int>(width / entry_width), 1, count);
  const int rows = (count + fitting - 1) / fitting;
  return (count + rows - 1) / rows;  // rows of nearly equal length
}

// Breaks the names of bars for a column of a given width.
void BreakRowNames(const Panel& panel, double column, const Page& page, PanelLayout& at) {
  for (const std::string& name : panel.rows) {
    const size_t fitting = page.width > 0 ? page.Fitting(kNamesShare * column) : name.size();
    at.row_names.push_back(WrapText(name, fitting));
  }
}

double Lines(const TextLines& lines, const Page& page) {
  return page.Inches(kLine) * static_cast<double>(lines.size());
}

// Returns the width of the labels of the tics of the y axis.
double TicRoom(const Panel& panel, const PanelLayout& at, const Page& page) {
  if (panel.rows.empty()) {
    return page.Inches(kTic) + page.Text(TicCharacters(panel.y, ExtentOfY(panel)));
  }
  size_t longest = 0;
  for (const TextLines& name : at.row_names) longest = std::max(longest, Longest(name));
  const double label = panel.y.label.empty() ? 0 : page.Inches(kLine);
  return page.Inches(kRowNameRoom) - label + page.Text(static_cast<double>(longest));
}

// Returns the height of the plots, which all panels share; columns have this width.
double PlotHeight(const Figure& figure,
                  const std::vector<PanelLayout>& panels,
                  double column,
                  const Page& page) {
  constexpr double kRatio = kPlotHeight / kColumnWidth;
  double height = page.width > 0 ? std::min(kPlotHeight, kRatio * column) : kPlotHeight;
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    size_t lines = 1;
    for (const TextLines& name : panels[i].row_names) lines = std::max(lines, name.size());
    const double row = page.Inches(kBarRow) * static_cast<double>(lines);
    height = std::max(height, row * static_cast<double>(figure.panels[i].rows.size()));
  }
  return height;
}

// The widths of a figure's columns.
struct Columns {
  std::vector<double> left;  // room beside the plots
  double plot = kPlotWidth;

  double Width() const {
    double width = 0;
    for (const double room : left) width += room + plot + kRight;
    return width;
  }
};

// Returns the columns of panels whose texts have been broken. On a page of a given width the plots
// share what the labels leave. Throws Error if that is too little.
Columns MakeColumns(const Figure& figure,
                    const std::vector<PanelLayout>& panels,
                    size_t columns,
                    const Page& page) {
  Columns result;
  result.left.resize(columns, page.width > 0 ? 0 : kLeft);
  for (size_t i = 0; i < panels.size(); ++i) {
    double& left = result.left[i % columns];
    const double label = Lines(panels[i].y_label_lines, page);
    left = std::max(left, label + TicRoom(figure.panels[i], panels[i], page));
  }
  if (page.width == 0) return result;
  const auto count = static_cast<double>(columns);
  result.plot = 0;
  const double beside = result.Width();
  result.plot = (page.width - beside) / count;
  if (result.plot < kLeastPlotWidth) {
    throw Error::Format(
        "figure {}: does not fit into a width of {:g} inches with text of {:g} points; "
        "expected at least {:.1f} inches",
        figure.name,
        page.width,
        page.scale * kFont,
        std::ceil(10 * (beside + count * kLeastPlotWidth)) / 10);
  }
  return result;
}

// Breaks title and legend into lines and sets the number of the legend's columns. Returns the number
// of the legend's rows.
size_t BreakPageTexts(const Figure& figure, const Page& page, FigureLayout& layout) {
  const double width = layout.width_inches - 0.2;
  layout.title_lines = WrapText(figure.title, page.Fitting(width * kFont / (kFont + 1)));
  const std::vector<LegendEntry> legend = LegendOf(figure);
  const int columns = layout.legend_columns = LegendColumns(legend, width, page);
  size_t lines = 0;
  for (const LegendEntry& entry : legend) {
    const size_t fitting = page.Fitting(width - page.Inches(kLegendSample));
    layout.legend_lines.push_back(columns > 1 ? TextLines{entry.label}
                                              : WrapText(entry.label, fitting));
    lines += layout.legend_lines.back().size();
  }
  return columns > 1 ? (legend.size() + columns - 1) / columns : lines;
}

// Returns the title of a panel and, on lines of its own, what the panel does not show.
TextLines TitleLines(const Panel& panel, size_t columns) {
  TextLines lines = WrapText(panel.title, columns);
  for (std::string& line : WrapText(BeyondText(panel), columns)) lines.push_back(std::move(line));
  return lines;
}

// Breaks the texts of the panels and returns their columns; the plots have this height.
Columns BreakPanelTexts(const Figure& figure,
                        size_t columns,
                        double plot_height,
                        const Page& page,
                        std::vector<PanelLayout>& panels) {
  for (size_t i = 0; i < panels.size(); ++i) {
    panels[i].y_label_lines =
        WrapMarkup(figure.panels[i].y.label, page.Fitting(plot_height + page.Inches(kAbove)));
  }
  Columns widths = MakeColumns(figure, panels, columns, page);
  const size_t fitting = page.Fitting(widths.plot + kRight);
  for (size_t i = 0; i < panels.size(); ++i) {
    panels[i].title_lines = TitleLines(figure.panels[i], fitting);
    panels[i].x_label_lines = WrapMarkup(figure.panels[i].x.label, fitting);
  }
  return widths;
}

// The heights of a page's parts, in inches.
struct Heights {
  double title = 0, legend = 0;  // of the page
  double above = 0, below = 0;   // beside a plot
  double plot = 0;
  size_t rows = 0;

  double Row() const { return above + plot + below; }
  double Page() const { return title + static_cast<double>(rows) * Row() + legend; }
};

Heights HeightsOf(const FigureLayout& layout, size_t legend_rows, const Page& page) {
  size_t title_lines = 0, label_lines = 1;
  for (const PanelLayout& panel : layout.panels) {
    title_lines = std::max(title_lines, panel.title_lines.size());
    label_lines = std::max(label_lines, panel.x_label_lines.size());
  }
  const auto strip = [&](size_t lines) {
    if (lines == 0) return 0.0;
    return page.Inches(kLine) * static_cast<double>(lines) + kLegendPadding;
  };
  Heights heights;
  heights.title = strip(layout.title_lines.size());
  heights.legend = strip(legend_rows);
  heights.above = page.Inches(kAbove + kLine * static_cast<double>(title_lines));
  heights.below = page.Inches(kBelow + kLine * static_cast<double>(label_lines - 1));
  return heights;
}

// Places the panels on the page, row by row.
void PlacePanels(const Figure& figure,
                 const Columns& columns,
                 const Heights& heights,
                 const Page& page,
                 FigureLayout& layout) {
  const double width = layout.width_inches, height = layout.height_inches;
  for (size_t i = 0; i < layout.panels.size(); ++i) {
    const size_t column = i % columns.left.size(), row = i / columns.left.size();
    double left = columns.left[column];
    for (size_t c = 0; c < column; ++c) left += columns.left[c] + columns.plot + kRight;
    const double top = height - heights.title - heights.Row() * static_cast<double>(row);
    PanelLayout& panel = layout.panels[i];
    panel.left = left / width;
    panel.right = (left + columns.plot) / width;
    panel.bottom = (top - heights.Row() + heights.below) / height;
    panel.top = (top - heights.above) / height;
    const double first_line = Lines(panel.y_label_lines, page) - page.Inches(kLine) / 2;
    panel.y_label_x = (left - TicRoom(figure.panels[i], panel, page) - first_line) / width;
  }
}

}  // namespace

FigureLayout LayOut(const Figure& figure, const FigureStyle& style) {
  NUMSIM_REQUIRE(!figure.panels.empty() && figure.columns >= 1,
                 "a figure of {} panels in {} columns, expected at least one of each",
                 figure.panels.size(),
                 figure.columns);
  const Page page{style.width, style.font / kFont};
  const size_t columns = std::min<size_t>(figure.columns, figure.panels.size());
  const double column = page.width / static_cast<double>(columns);
  FigureLayout layout;
  layout.panels.resize(figure.panels.size());
  for (size_t i = 0; i < layout.panels.size(); ++i) {
    BreakRowNames(figure.panels[i], column, page, layout.panels[i]);
  }
  const double plot_height = PlotHeight(figure, layout.panels, column, page);
  const Columns widths = BreakPanelTexts(figure, columns, plot_height, page, layout.panels);
  layout.width_inches = widths.Width();
  const size_t legend_rows = BreakPageTexts(figure, page, layout);

  Heights heights = HeightsOf(layout, legend_rows, page);
  heights.plot = plot_height;
  heights.rows = (figure.panels.size() + columns - 1) / columns;
  layout.height_inches = heights.Page();
  layout.title_top = 1 - page.Inches(kLine) / layout.height_inches;
  layout.legend = {0, 1, 0, heights.legend / layout.height_inches};
  PlacePanels(figure, widths, heights, page, layout);
  return layout;
}

}  // namespace numsim
