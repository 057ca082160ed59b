// The script and the data by which gnuplot draws a figure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/plot/figure.h"

namespace numsim {

// Which points of a figure can be drawn: io's own, used by the gnuplot script.

// Whether the axis can show the value: at most 1e300 in magnitude, as gnuplot takes much larger
// ones for infinite, and at least 1e-300 on a logarithmic axis.
bool IsDrawable(const Axis& axis, double value);

// Least and greatest drawable value of one axis; empty when there is none.
struct Extent {
  double low = 0;
  double high = 0;
  bool empty = true;

  void Include(double value);
};
Extent ExtentOfX(const Panel& panel);  // 0 included where the panel has bars
Extent ExtentOfY(const Panel& panel);  // bands included

// Number of points of the series that can be drawn.
size_t DrawablePoints(const Panel& panel, const Series& series);

// The lines "x y" of a series; a blank line, which interrupts the curve, for each run of points
// that cannot be drawn. Requires equal lengths of x and y.
std::string CurveRows(const Panel& panel, const Series& series);

// The lines "x y x_low x_high y_low y_high" of the bars of series `index` of a panel that has rows;
// bars that cannot be drawn are left out. Requires equal lengths of x and y.
std::string BarRows(const Panel& panel, size_t index);

// The lines "x low high" of the band, "" when there is none to draw. An end that the axis cannot
// show while the point itself can (a lower end <= 0 on a log axis) is put at the axis' end or at
// the least value in the panel; a NaN end interrupts the band.
std::string BandRows(const Panel& panel, const Series& series);

// Where things stand on the page of a figure: io's own, used by the gnuplot script.

// Sides of a rectangle as fractions of the page, origin at the lower left.
struct PageArea {
  double left = 0, right = 1, bottom = 0, top = 1;
};

// One line of the legend: what a series looks like, and its label.
struct LegendEntry {
  std::string label;
  int style = 0;
  bool dashed = false;
  bool markers = true;
  bool bars = false;

  friend bool operator==(const LegendEntry&, const LegendEntry&) = default;
};

// Each labelled look once, in the order of first appearance.
std::vector<LegendEntry> LegendOf(const Figure& figure);

struct FigureLayout {
  double width_inches = 0;
  double height_inches = 0;
  std::vector<std::string> title_lines;  // none: no title
  double title_top = 1;                  // of the figure's title, a fraction of the page
  std::vector<std::vector<std::string>> panel_title_lines;
  std::vector<PageArea> panels;  // the axes' rectangles
  PageArea legend;               // a strip of its own at the foot
  int legend_columns = 0;        // 0: no legend
};

// Requires at least one panel and columns >= 1.
FigureLayout LayOut(const Figure& figure);

// Breaks text at blanks into lines of at most `columns` characters where words allow.
std::vector<std::string> WrapText(std::string_view text, size_t columns);

// Axes of gnuplot scripts: io's own, used by gnuplot_script.cc alone.

// Returns the commands that set scale, range, tics and label of axis `name`, 'x' or 'y', for data
// of that extent. They do not depend on what was set before.
std::string AxisCommands(char name, const Axis& axis, const Extent& extent);

// The same of the y axis of a panel of bars, with the names of its rows. Requires rows.
std::string RowAxisCommands(const Panel& panel);

// Figures as gnuplot scripts.

// Returns a script for gnuplot 5.2 or newer that holds the figure's data and writes NAME.svg and
// NAME.pdf into the current directory. The same figure gives the same text.
// Requires a name without '/', at least one panel, and positive limits on log axes.
std::string GnuplotScript(const Figure& figure);

// Returns a gnuplot expression for the text, which no character of it can leave: gnuplot runs
// `commands` in backquotes found within double quotes, so only single quotes are used.
// Line feeds stay, other control characters become blanks.
std::string GnuplotText(std::string_view text);

}  // namespace numsim
