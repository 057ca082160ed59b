// Figures of dots as data: a row for each value of a column, which may be a text.
#pragma once

#include <functional>
#include <string>

#include "experiments/study/claim_row.h"
#include "experiments/study/lines.h"
#include "numsim/plot/figure.h"

namespace numsim::experiments::study {

struct Dots {
  std::string name;
  std::string title;  // with columns of the first row in braces
  std::string table;
  std::string along;       // the column of the rows
  std::string line = {};   // column with a colour for each value; empty: one colour
  std::string panel = {};  // column with a panel for each value; empty: one panel
  std::string x;           // column; X_low and X_high, if the table has them, are its interval
  std::string x_label, y_label;  // y: of the rows
  bool log10 = false;            // of x
  int columns = 2;
  PanelTitle panel_title = {};  // empty: the value
  Picks where = {};             // conditions of the rows that are shown
};

// Returns the function of Study::figures that draws the dots. Of a study with a centre they are those of arms
// that differ from it along these columns only.
std::function<Figure(const Results&)> Draw(Dots dots);

}  // namespace numsim::experiments::study
