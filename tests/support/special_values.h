// The special values of float32. They convert to float64 without a change of meaning.
#pragma once

#include <limits>

namespace numsim {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace numsim
