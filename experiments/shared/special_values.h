// The special values that stand for "not measured" and "unbounded" in tables of results.
#pragma once

#include <limits>

namespace numsim::experiments {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace numsim::experiments
