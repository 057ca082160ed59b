// Which points of a figure can be drawn: io's own, used by the gnuplot script.
#pragma once

#include <cstddef>
#include <string>

#include "numsim/io/figure.h"

namespace numsim {

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

}  // namespace numsim
