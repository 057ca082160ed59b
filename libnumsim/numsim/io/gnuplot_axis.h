// Axes of gnuplot scripts: io's own, used by gnuplot_script.cc alone.
#pragma once

#include <string>

#include "numsim/io/figure.h"
#include "numsim/io/figure_data.h"

namespace numsim {

// Returns the commands that set scale, range, tics and label of axis `name`, 'x' or 'y', for data
// of that extent. They do not depend on what was set before.
std::string AxisCommands(char name, const Axis& axis, const Extent& extent);

}  // namespace numsim
