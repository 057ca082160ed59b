// Simulated outcomes of an experiment whose truth is known.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "experiments/claims/verdict.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments {

struct TrueEffects {
  std::vector<double> arms;  // effects; arm i is named "0", "1", ...
  int seeds = 0;
  std::vector<double> scatter = {1};  // standard deviations of residuals: one, or one per arm
};

// Returns outcomes with normal residuals and normal effects of the seeds of standard deviation 3.
// Tables of one trial with fewer seeds are the first columns of those with more.
inline OutcomeTable Simulated(const TrueEffects& truth, uint64_t trial) {
  const int arms = static_cast<int>(truth.arms.size()), seeds = truth.seeds;
  OutcomeTable table = {{}, seeds, std::vector<double>(arms * seeds)};
  std::vector<float> normal((arms + 1) * seeds);
  FillNormal({.seed = 11, .stream = trial}, 0, normal);
  for (int arm = 0; arm < arms; ++arm) {
    table.arms.push_back(std::to_string(arm));
    const double scatter = truth.scatter[truth.scatter.size() == 1 ? 0 : arm];
    for (int seed = 0; seed < seeds; ++seed) {
      const float* const column = &normal[seed * (arms + 1)];
      table.values[arm * seeds + seed] = truth.arms[arm] + 3 * column[arms] + scatter * column[arm];
    }
  }
  return table;
}

// Returns the share of trials for which `holds` returns true.
template <typename Holds>
double ShareOf(int trials, Holds holds) {
  int count = 0;
  for (int trial = 0; trial < trials; ++trial) count += holds(static_cast<uint64_t>(trial));
  return count / static_cast<double>(trials);
}

// Returns 3.5 standard errors of a share of so many trials.
inline double MonteCarloError(double share, int trials) {
  return 3.5 * std::sqrt(share * (1 - share) / trials);
}

}  // namespace numsim::experiments
