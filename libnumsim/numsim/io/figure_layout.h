// Where things stand on the page of a figure: io's own, used by the gnuplot script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/figure.h"

namespace numsim {

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

}  // namespace numsim
