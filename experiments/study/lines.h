// Figures of lines as data: a panel for each value of a column, a line for each value of another.
#pragma once

#include <functional>
#include <string>

#include "experiments/study/claim_row.h"
#include "numsim/plot/figure.h"

namespace numsim::experiments::study {

// Returns the title of a panel: of a value, whose rows these are.
using PanelTitle = std::function<std::string(const std::string& value, const Frame& rows)>;

struct Lines {
  std::string name;
  std::string title;  // with columns of the first row in braces
  std::string table;
  std::string panel, line;  // columns
  std::string x, y;         // columns
  std::string x_label, y_label;
  bool log10 = false;  // of y
  bool log2_x = false;
  bool same_y = false;   // as Figure::same_y
  bool to_last = false;  // x is from 0 to its largest value
  bool markers = false;
  int columns = 2;
  // Points are means of x and y over the rows of each value of this column; empty: of y over those of x.
  std::string by = {};
  PanelTitle panel_title = {};  // empty: the value
  Picks where = {};             // conditions of the rows that are shown
  // Bands are from the least Y_low to the largest Y_high in place of the range over seeds.
  bool interval = false;
  // A column drawn dotted beside each line, in its colour. The legend has the label once.
  std::string dotted = {}, dotted_label = {};
  // Returns the rows that are shown; empty: all.
  std::function<Frame(const Results&, const Frame&)> rows = {};
  // Completes the panel of a value; the frame has the rows of all panels.
  std::function<void(const Results&, const Frame&, const std::string& value, Panel&)> complete = {};
};

// Returns the function of Study::figures that draws the lines.
std::function<Figure(const Results&)> Draw(Lines lines);
// Adds a series with the next style to a panel.
void AddSeries(Series series, std::string label, Panel& panel);

}  // namespace numsim::experiments::study
