#include "experiments/shared/log_slope.h"

#include <algorithm>
#include <vector>

#include "experiments/claims/line_fit.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments {

Estimate LogSlope(const Frame& frame,
                  std::string_view x,
                  std::string_view y,
                  const LogErrorOf& log_error) {
  // With errors as small as the least one, the interval of FitLine is that of the scatter.
  constexpr double kLeastError = 1e-9, kLeast = 1e-300, kMost = 1e300;
  std::vector<double> log_x, log_y, errors;
  frame.ForEach([&](const Frame& row) {
    const double value = row.Number(y);
    if (!(value >= kLeast && value <= kMost)) return;
    log_x.push_back(Log(row.Number(x)));
    log_y.push_back(Log(value));
    errors.push_back(std::max(log_error ? log_error(row) : 0, kLeastError));
  });
  const bool is_line =
      log_x.size() >= 3 && !std::equal(log_x.begin() + 1, log_x.end(), log_x.begin());
  return is_line ? FitLine(log_x, log_y, errors).slope : Estimate{kNaN, kNaN, kNaN};
}

SeedValues LogSlopes(const Frame& frame,
                     std::string_view x,
                     std::string_view y,
                     const LogErrorOf& log_error) {
  SeedValues slopes;
  for (const Frame& seed : frame.By({"seed"})) {
    slopes[seed.Text("seed")] = LogSlope(seed, x, y, log_error).value;
  }
  return slopes;
}

}  // namespace numsim::experiments
