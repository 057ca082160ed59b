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
// Returns true if point i of the series can be drawn in the panel.
bool IsDrawablePoint(const Panel& panel, const Series& series, size_t i);

// The smallest and the largest drawable value on one axis; empty if there is none.
struct Extent {
  double low = 0;
  double high = 0;
  bool empty = true;

  void Include(double value);
};
Extent ExtentOfX(const Panel& panel);  // includes 0 if the panel has bars, which are no dots
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
// Returns the lines "x y" of the dots of series `index`, each where the middle of a bar would be: every x
// as it is, also beyond the axis. Requires a panel with rows.
std::string DotRows(const Panel& panel, size_t index);
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
  bool line = true;  // false: no curve of this look has two points in a row

  friend bool operator==(const LegendEntry&, const LegendEntry&) = default;
};

// Returns the distinct legend entries, in the order of first appearance.
std::vector<LegendEntry> LegendOf(const Figure& figure);

using TextLines = std::vector<std::string>;

// The place of one panel and its texts, broken into lines.
struct PanelLayout : PageArea {  // the rectangle of the axes
  TextLines title_lines;
  TextLines x_label_lines, y_label_lines;
  double y_label_x = 0;  // of the middle of the first line, as a fraction of the page
  std::vector<TextLines> row_names;
};

struct FigureLayout {
  double width_inches = 0;
  double height_inches = 0;
  TextLines title_lines;  // empty: no title
  double title_top = 1;   // vertical position of the title, as a fraction of the page
  std::vector<PanelLayout> panels;
  PageArea legend;                      // a strip at the bottom of the page
  int legend_columns = 0;               // 0: no legend
  std::vector<TextLines> legend_lines;  // the label of each entry; more than one only in one column
};

// Returns the panels of the style, in as many columns as are legible in its width. If same_y, panels
// without a range of y get one that holds the values of all. Throws Error naming a panel that is not
// there.
Figure Arranged(const Figure& figure, const FigureStyle& style);

// Computes the layout. Requires at least one panel and columns >= 1. Throws Error if the style's
// width is too small, naming one that is enough.
FigureLayout LayOut(const Figure& figure, const FigureStyle& style = {});

// The size of the text for which layouts are made, in points, and the least width of one of several
// columns of panels with such text, in inches.
inline constexpr double kFont = 8;
inline constexpr double kLegibleColumn = 2.3;

// Returns the number of characters of UTF-8 text.
size_t Characters(std::string_view text);

// Breaks text at blanks into lines of at most `columns` characters; longer words get lines of their
// own.
TextLines WrapText(std::string_view text, size_t columns);

// Breaks a label in gnuplot's markup in the same way, but never within braces. Markup has no width.
TextLines WrapMarkup(std::string_view label, size_t columns);

// The axes of gnuplot scripts.

// Returns the range that an axis shows: its own, or that of the data with some room; never empty.
Extent ShownRange(const Axis& axis, const Extent& extent);

// Returns the commands that set scale, range and tics of axis `name`, 'x' or 'y', for data
// of that extent. The commands do not depend on earlier settings.
std::string AxisCommands(char name, const Axis& axis, const Extent& extent);

// Returns the number of characters of the widest label of the tics of a y axis for data of that
// extent.
double TicCharacters(const Axis& axis, const Extent& extent);

// Returns such commands for the y axis of a panel of bars or dots, with the row names, broken into lines,
// as labels. Requires a panel with rows and, for bars, a linear x axis.
std::string RowAxisCommands(const Panel& panel, const std::vector<TextLines>& names);

// Figures as gnuplot scripts.

// Returns a script for gnuplot 5.2 or newer that contains the figure's data and writes NAME.svg and
// NAME.pdf into the current directory. The same figure and style give the same text. Requires a
// nonempty name without '/', at least one panel, and positive limits on log axes. Throws Error as
// Arranged and LayOut do.
std::string GnuplotScript(const Figure& whole, const FigureStyle& style = {});

// Returns the text as a gnuplot string expression from which no character can escape. gnuplot runs
// `commands` in backquotes within double quotes, so the text is put into single quotes. Line feeds
// are kept; other control characters become blanks.
std::string GnuplotText(std::string_view text);

}  // namespace numsim
