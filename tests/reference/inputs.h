// Inputs at which a conversion can go wrong, for the tests of every backend.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/reference/oracle.h"

namespace oracle {

// Positions 0 .. grid.end(): every `stride`-th, and with a stride above 1 also the first and last
// few of each binade, where spacing and exponent change.
std::vector<int64_t> Positions(const Grid& grid, int64_t stride);

// The value at each of those positions and the points one, two and three quarters of the way to
// the next, in ascending order: every tie, and a point clearly on either side of it. The last ones
// lie between the largest value and the next of the unbounded range, and beyond.
std::vector<double> Landmarks(const Grid& grid, int64_t stride);

// Bits of the float32 numbers nearest x >= 0 in both directions, x itself among them if it is one.
// Near the ends of the range they include zero, infinity and NaN.
std::array<uint32_t, 7> NearF32(double x);
// Bits of float64 numbers near x >= 0: x, its neighbours, and numbers off by 2^-32, 2^-24 and 2^-23
// of x, which a conversion through float32 would confuse with x.
std::array<uint64_t, 11> NearF64(double x);

// Bits (sign clear) of zero, infinity, NaNs with various payloads, the smallest, largest and some
// odd subnormals, the largest number, and three numbers of every binade.
std::vector<uint32_t> SpecialF32();
std::vector<uint64_t> SpecialF64();

// A small generator of the tests' own (splitmix64), so that no test depends on numsim's.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  uint32_t Next32() { return static_cast<uint32_t>(Next() >> 32); }
  uint64_t Below(uint64_t n) { return Next() % n; }

 private:
  uint64_t state_;
};

}  // namespace oracle
