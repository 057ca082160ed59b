#include "tests/reference/intervals.h"

#include <algorithm>

namespace oracle {

std::vector<Interval> Float32Intervals(const Grid& grid,
                                       const Setting& setting,
                                       uint32_t random,
                                       bool negative) {
  constexpr uint32_t kInfinity = 0x7F800000;
  const uint32_t sign = negative ? 0x80000000u : 0;
  const auto code = [&](uint32_t pattern) {
    return Encode(grid, FromFloat32(sign | pattern), setting, random);
  };
  std::vector<Interval> intervals;
  for (uint32_t first = 0; first <= kInfinity;) {
    const uint32_t here = code(first);
    uint32_t last = first;
    uint32_t other = kInfinity + 1;  // the first pattern known to be something else
    while (other - last > 1) {
      const uint32_t middle = last + (other - last) / 2;
      (code(middle) == here ? last : other) = middle;
    }
    intervals.push_back({sign | first, sign | last, here});
    first = last + 1;
  }
  intervals.push_back({sign | (kInfinity + 1), sign | 0x7FFFFFFF, code(kInfinity + 1)});
  return intervals;
}

std::vector<Interval> Pieces(const std::vector<Interval>& intervals, uint32_t length) {
  std::vector<Interval> pieces;
  for (const Interval& whole : intervals) {
    for (uint64_t first = whole.first; first <= whole.last; first += length) {
      const uint64_t last = std::min<uint64_t>(first + length - 1, whole.last);
      pieces.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(last), whole.code});
    }
  }
  return pieces;
}

}  // namespace oracle
