// Quantiles of a sample.
#pragma once

#include <vector>

namespace numsim {

// The value below which a share `q` of `samples` lies: linear between the sorted samples, of which
// the first stands at q = 0 and the last at q = 1; 0.5 is the median. Requires samples without NaN
// and 0 <= q <= 1.
double Quantile(std::vector<double> samples, double q);

}  // namespace numsim
