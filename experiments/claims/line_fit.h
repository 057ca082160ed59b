// Fits straight lines through points, for log-log slopes.
#pragma once

#include <span>

#include "numsim/stats/moments.h"

namespace numsim::experiments {

struct LineFit {
  double intercept = 0;
  Estimate slope;
};

// Returns the least-squares line y = intercept + slope x with weights 1 / error^2, where error is
// the standard error of each y. The interval of the slope is the larger of two: one from the given
// errors, the other from the scatter about the line (Student's t, n - 2 degrees of freedom). So a
// line fitted to a curve does not look more certain than it is. Requires errors > 0.
// Throws Error unless the lengths are equal and >= 3, with at least two distinct x.
LineFit FitLine(std::span<const double> x,
                std::span<const double> y,
                std::span<const double> errors);

}  // namespace numsim::experiments
