// Figures as data, drawn by gnuplot. A figure is written as a self-contained gnuplot script, which
// includes the data, together with the SVG and the PDF made from it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace numsim {

// One curve. x and y have equal lengths. A point whose x or y is NaN is left out, and the line is
// interrupted there. low and high, the ends of the error band, are empty or as long as y. No number is
// changed in order to be drawn: what an axis does not show (beyond its range, not positive on a log
// axis, infinite) is counted in the title of the panel, and has a triangle at the end of the axis if
// the curve has markers. Series of the same `style` have the same colour, dash and marker in all
// panels; styles are numbered from 0 in a colour-blind safe palette [OkabeIto].
struct Series {
  std::string label = {};  // legend text, without markup; empty: not in the legend
  int style = 0;
  bool dashed = false;  // dotted, unlike any style; e.g. for a prediction next to its measurement
  bool markers = true;
  std::vector<double> x = {}, y = {};
  // Ends of an interval around each y, shown as a band, or as an error bar if there is one point.
  std::vector<double> low = {}, high = {};
  bool error_bars = false;  // an error bar at every point instead of a band
};

// An axis of a panel.
struct Axis {
  // Include the unit, if any. The only text in which gnuplot's markup works: {/Italic x}, x_{max},
  // 10^{-3}; a plain underscore is written \_. Write other letters and symbols in UTF-8, not as
  // {/Symbol ...}.
  std::string label = {};
  bool log10 = false;
  bool log2 = false;
  double low = 0, high = 0;  // equal: automatic; both > 0 on a log axis
};

// A panel of a figure: curves over two axes, or bars in rows.
struct Panel {
  std::string title = {};  // without markup; long titles are broken at blanks
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  // If not empty, the panel shows horizontal bars instead of curves, in rows with these names
  // (without markup) from top to bottom. A point (x, y) is a bar from 0 to x in row y = 0, 1, ...;
  // series share the height of a row; low and high are the ends of an error bar along x. The x axis
  // must be linear. Only the label of the y axis is used, and dashed and markers of a series are not.
  std::vector<std::string> rows = {};
  // With rows: dots at x instead of bars from 0. The x axis need not show 0 and may be logarithmic.
  bool dots = false;
};

// A figure of one or more panels, laid out row by row, with one legend for the labels of all
// panels.
struct Figure {
  std::string name = {};   // file name without extension
  std::string title = {};  // as Panel::title
  int columns = 1;
  std::vector<Panel> panels = {};
  // The name of the CSV from which the figure was computed; written as a comment in the script.
  std::string source_csv = {};
  bool same_y = false;  // panels without a range of y of their own show the same one
};

// The size and the choice of panels with which a figure is drawn, e.g. for a column of a paper.
struct FigureStyle {
  // Inches, from 1 to 40. The panels then stand in as many columns as are legible, at most
  // Figure::columns. 0: about 3.4 inches per column of panels, plus the space for the names of bars.
  double width = 0;
  double font = 8;  // size of the text in points, from 4 to 40; the figure's title is 1 pt larger
  std::vector<size_t> panels = {};  // numbers, counted from 1, in this order; empty: all
};

// Writes DIR/NAME.gp and, if gnuplot is found, DIR/NAME.svg and DIR/NAME.pdf. Returns the paths
// written, relative to `directory`. `gnuplot NAME.gp` in DIR redraws both. The same figure, style
// and gnuplot give the same bytes (the PDF is dated 1970). The text is sans-serif. Throws Error if
// the figure lacks a panel of the style, if it does not fit into the style's width, if a file cannot
// be written or gnuplot fails (with gnuplot's output).
std::vector<std::string> DrawFigure(const Figure& figure,
                                    const std::filesystem::path& directory,
                                    const FigureStyle& style = {});

// Returns the version of the gnuplot on the PATH; "" if there is none that can write SVG and PDF.
std::string GnuplotVersion();

}  // namespace numsim
