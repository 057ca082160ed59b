// Figures as data, drawn by gnuplot. A figure is a self-contained gnuplot script (its data are in
// the script) beside the SVG and the PDF made from it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace numsim {

// One curve. x, y have equal lengths; points whose x or y is not finite (or not positive on a log
// axis) are left out, and the line is interrupted there. low and high are empty or as long as y:
// the error band; an end of it that a log axis cannot show is drawn at the least value shown.
// Series of the same `style` in different panels get the same colour, dash and marker; style counts
// from 0 through a colour-blind safe palette (Okabe-Ito).
struct Series {
  std::string label;  // legend, shown as it is; empty: not in the legend
  int style = 0;
  bool dashed = false;  // dotted, as no style is: e.g. a prediction beside its measurement
  bool markers = true;
  std::vector<double> x, y;
  std::vector<double> low, high;
};

struct Axis {
  // With unit where there is one. The one text in which gnuplot's markup works: {/Italic x},
  // x_{max}, 10^{-3}; a plain underscore is \_. Other letters and signs as UTF-8, not as {/Symbol
  // ...}.
  std::string label;
  bool log10 = false;
  bool log2 = false;
  double low = 0, high = 0;  // equal: automatic; both > 0 on a log axis
};

struct Panel {
  std::string title;  // shown as it is; long ones are broken at blanks
  Axis x, y;
  std::vector<Series> series;
  // Not empty: horizontal bars instead of curves, in rows of these names (shown as they are) from
  // the top down. A point (x, y) is a bar from 0 to x in row y = 0, 1, ...; series share the height
  // of a row. The x axis is linear; y.label is all of the y axis that counts, and of a series
  // label, style, x and y.
  std::vector<std::string> rows = {};
};

// Panels are laid out row by row; one legend for the whole figure, from all panels' labels.
struct Figure {
  std::string name;   // file name without extension
  std::string title;  // as Panel's
  int columns = 1;
  std::vector<Panel> panels;
  // The name of the CSV that the figure was computed from: a comment in the script.
  std::string source_csv;
};

// Writes DIR/NAME.gp, and DIR/NAME.svg and DIR/NAME.pdf where gnuplot is found; `gnuplot NAME.gp`
// in DIR draws both again. The same figure and gnuplot give the same bytes (the PDF bears the date
// 1970). Sized for a paper column: about 3.4 in wide per column of panels, and what the names of
// bars take beside it, sans-serif 8 pt or more. Returns the paths written, relative to `directory`.
// Without gnuplot only the script is written. Throws Error when a file cannot be written or gnuplot
// fails (with what it said).
std::vector<std::string> DrawFigure(const Figure& figure, const std::filesystem::path& directory);

// Whether a gnuplot that can write SVG and PDF is on the PATH, and its version ("" when not).
std::string GnuplotVersion();

}  // namespace numsim
