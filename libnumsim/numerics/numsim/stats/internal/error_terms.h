// Terms that error measures of float32 and of float64 arrays have in common.
#pragma once

#include <cstddef>

namespace numsim::error_terms {

inline constexpr double kDecibelPerNeper = 4.342944819032518;  // 10 / ln 10

// Returns part / whole, or 0 if there is nothing.
inline double Share(size_t part, size_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace numsim::error_terms
