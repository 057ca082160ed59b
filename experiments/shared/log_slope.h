// Log-log slopes of the rows of a table: exponents of power laws such as variance ~ k^1.
#pragma once

#include <functional>
#include <string_view>

#include "experiments/claims/frame.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments {

// Returns the standard error of log(y) in a row.
using LogErrorOf = std::function<double(const Frame& row)>;

// Returns the slope of log(y) against log(x) with its 95 % interval. Rows are weighted by their
// standard errors; without `log_error` all weigh the same, and the interval is that of the scatter
// about the line. Rows with a y outside 1e-300 to 1e300 are left out. NaN for fewer than three rows
// and for a single x.
Estimate LogSlope(const Frame& frame,
                  std::string_view x,
                  std::string_view y,
                  const LogErrorOf& log_error = {});

// Returns that slope of each seed by itself.
SeedValues LogSlopes(const Frame& frame,
                     std::string_view x,
                     std::string_view y,
                     const LogErrorOf& log_error = {});

}  // namespace numsim::experiments
