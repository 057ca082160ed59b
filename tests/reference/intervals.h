// All float32 inputs of a conversion as runs of equal result: what makes a check of every one of
// the 2^32 inputs a walk with a comparison a step.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/reference/oracle.h"

namespace oracle {

// Float32 bit patterns first .. last, all of which become `code`.
struct Interval {
  uint32_t first;
  uint32_t last;
  uint32_t code;
};

// Every float32 pattern of that sign, NaNs included, in ascending order. Rounding with a fixed word
// is monotone in the magnitude, so each run's end is found by halving.
std::vector<Interval> Float32Intervals(const Grid& grid,
                                       const Setting& setting,
                                       uint32_t random,
                                       bool negative);

// The same runs, cut into pieces of at most `length` patterns.
std::vector<Interval> Pieces(const std::vector<Interval>& intervals, uint32_t length);

}  // namespace oracle
