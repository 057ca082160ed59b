// Straight lines through points, for log-log slopes.
#pragma once

#include <span>

#include "numsim/stats/moments.h"

namespace numsim {

struct LineFit {
  double intercept = 0;
  Estimate slope;
};

// The least-squares line y = intercept + slope x with weights 1 / error^2, error the standard error
// of each y. The slope's interval is the larger of two: from the given errors, and from the scatter
// about the line (Student's t, n - 2 degrees of freedom), so that a curve fitted by a line does not
// look more certain than it is. Requires equal lengths >= 3, errors > 0 and at least two distinct
// x.
LineFit FitLine(std::span<const double> x,
                std::span<const double> y,
                std::span<const double> errors);

}  // namespace numsim
