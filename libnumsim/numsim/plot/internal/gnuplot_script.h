// The script and the data with which gnuplot draws a figure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/plot/figure.h"

namespace numsim {

// The points of a figure that can be drawn.

// Returns true if the axis can show the value: its magnitude is at most 1e300 (gnuplot treats much
// larger values as infinite), and on a logarithmic axis it is at least 1e-300.
bool IsDrawable(const Axis& axis, double value);

// The smallest and the largest drawable value on one axis; empty if there is none.
struct Extent {
  double low = 0;
  double high = 0;
  bool empty = true;

  void Include(double value);
};
Extent ExtentOfX(const Panel& panel);  // includes 0 if the panel has bars
Extent ExtentOfY(const Panel& panel);  // includes error bands

// Returns the number of points of the series that can be drawn.
size_t DrawablePoints(const Panel& panel, const Series& series);

// Returns the lines "x y" of a series: every y as it is, also beyond the axis. Each run of points
// without a number for y or a drawable x becomes one blank line, which interrupts the curve.
// Requires equal lengths of x and y.
std::string CurveRows(const Panel& panel, const Series& series);

// Returns the lines "x y x_low x_high y_low y_high" of the bars of series `index`; bars that cannot
// be drawn are left out. Requires a panel with rows and equal lengths of x and y.
std::string BarRows(const Panel& panel, size_t index);
// Returns the lines "x y x_low x_high" of the error bars of series `index`, each in the middle of its
// bar; "" if there are none to draw. Requires a panel with rows.
std::string ErrorBarRows(const Panel& panel, size_t index);

// Returns the lines "x low high" of the error band, every end as it is; "" if there is no band to
// draw. A NaN end interrupts the band.
std::string BandRows(const Panel& panel, const Series& series);

// Returns what a panel does not show of its data, for its title: "not shown: 2 points above, to
// 4.06; interval ends to -0.7"; "" if it shows all. Points without a number are no data.
std::string BeyondText(const Panel& panel);

// The page layout of a figure.

// The sides of a rectangle as fractions of the page, with the origin at the lower left.
struct PageArea {
  double left = 0, right = 1, bottom = 0, top = 1;
};

// One entry of the legend: the look and the label of a series.
struct LegendEntry {
  std::string label;
  int style = 0;
  bool dashed = false;
  bool markers = true;
  bool bars = false;

  friend bool operator==(const LegendEntry&, const LegendEntry&) = default;
};

// Returns the distinct legend entries, in the order of first appearance.
std::vector<LegendEntry> LegendOf(const Figure& figure);

struct FigureLayout {
  double width_inches = 0;
  double height_inches = 0;
  std::vector<std::string> title_lines;  // empty: no title
  double title_top = 1;  // vertical position of the title, as a fraction of the page
  std::vector<std::vector<std::string>> panel_title_lines;
  std::vector<PageArea> panels;  // the rectangles of the axes
  PageArea legend;               // a strip at the bottom of the page
  int legend_columns = 0;        // 0: no legend
};

// Computes the layout. Requires at least one panel and columns >= 1.
FigureLayout LayOut(const Figure& figure);

// Breaks text at blanks into lines of at most `columns` characters; longer words get lines of their
// own.
std::vector<std::string> WrapText(std::string_view text, size_t columns);

// The axes of gnuplot scripts.

// Returns the range that an axis shows: its own, or that of data of that extent with some room.
Extent ShownRange(const Axis& axis, const Extent& extent);

// Returns the commands that set scale, range, tics and label of axis `name`, 'x' or 'y', for data
// of that extent. The commands do not depend on earlier settings.
std::string AxisCommands(char name, const Axis& axis, const Extent& extent);

// Returns such commands for the y axis of a panel of bars, with the row names as labels. Requires a
// panel with rows and a linear x axis.
std::string RowAxisCommands(const Panel& panel);

// Figures as gnuplot scripts.

// Returns a script for gnuplot 5.2 or newer that contains the figure's data and writes NAME.svg and
// NAME.pdf into the current directory. The same figure gives the same text. Requires a nonempty
// name without '/', at least one panel, and positive limits on log axes.
std::string GnuplotScript(const Figure& figure);

// Returns the text as a gnuplot string expression from which no character can escape. gnuplot runs
// `commands` in backquotes within double quotes, so the text is put into single quotes. Line feeds
// are kept; other control characters become blanks.
std::string GnuplotText(std::string_view text);

}  // namespace numsim
