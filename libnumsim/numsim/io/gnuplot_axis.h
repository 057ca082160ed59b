// Axes of gnuplot scripts: io's own, used by gnuplot_script.cc alone.
#pragma once

#include <string>

#include "numsim/io/figure.h"
#include "numsim/io/figure_data.h"

namespace numsim {

// Returns the commands that set scale, range, tics and label of axis `name`, 'x' or 'y', for data
// of that extent. They do not depend on what was set before.
std::string AxisCommands(char name, const Axis& axis, const Extent& extent);

// The same of the y axis of a panel of bars, with the names of its rows. Requires rows.
std::string RowAxisCommands(const Panel& panel);

}  // namespace numsim
