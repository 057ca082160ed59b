#include <algorithm>
#include <cstddef>

#include "numsim/base/require.h"
#include "numsim/stats/moments.h"

namespace numsim {

double Quantile(std::vector<double> samples, double q) {
  NUMSIM_REQUIRE(!samples.empty(), "Quantile: no samples, expected at least one");
  NUMSIM_REQUIRE(q >= 0 && q <= 1, "Quantile: q is {}, expected 0 to 1", q);
  std::sort(samples.begin(), samples.end());
  const double place = q * static_cast<double>(samples.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  const double weight = place - static_cast<double>(below);
  return samples[below] + weight * (samples[above] - samples[below]);
}

}  // namespace numsim
