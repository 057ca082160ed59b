// Made-up cases of block operations and dots, for the `edges` of cases.h.
#pragma once

#include <cstdint>
#include <vector>

#include "numsim/vectors/operation.h"

namespace numsim {

// Rows of operation.operands() numbers, one after the other. Requires shape() kBlock or kDot.
//
// kBlock: equal elements; one element among others (largest, NaN, infinities, at the ends and in
// the middle); maxima at and around every value and midpoint of the scale's format; every value and
// midpoint of the code's format and its neighbours, under several scales. Where there is a tensor
// scale, it is 1 but for rows that try others, zero and NaN among them.
// kDot: equal elements; products of each special kind among ones; overflow that cancels; sums that
// are ties of the result, also but for a tiny product; falling and rising magnitudes.
std::vector<uint64_t> EdgeRows(const Operation& operation);

}  // namespace numsim
