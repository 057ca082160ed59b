// The independent oracle: conversion to a format by searching the list of its values.
//
// It shares no code with what it judges, and not the algorithm either. The values of a format are
// listed in ascending order by adding the spacing of the current binade; a number is rounded by
// finding its two neighbours in that list and comparing exact distances. No code is shifted, no
// sticky bit kept. No header of the library is included.
//
// All values, midpoints, distances and gaps are float64 numbers without error; oracle.cc says why.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/reference/formats.h"

namespace oracle {

// The modes, variants of stochastic rounding and overflow policies, named as in
// numsim/rounding/rounding_modes.inc and rounding.h, which define them.
enum class Mode {
  kNearestEven,
  kNearestAway,
  kTowardZero,
  kUp,
  kDown,
  kToOdd,
  kStochastic,
};
enum class Variant { kA, kB, kC };
enum class Policy { kNonsaturate, kSaturate, kPropagate };

struct Setting {
  Mode mode = Mode::kNearestEven;
  Policy policy = Policy::kNonsaturate;
  Variant variant = Variant::kA;  // read only under kStochastic, as is random_bits, 1..32
  int random_bits = 32;
};

// Every deterministic mode with every policy.
std::vector<Setting> DeterministicSettings();
// Combinations of variant and number of random bits, each with one of the policies.
std::vector<Setting> StochasticSettings();
// All of these.
std::vector<Setting> AllSettings();

// Text such as "rtp saturate" or "sr b 13 propagate".
std::string Describe(const Setting& setting);

// The meaning of a code or a float.
struct Real {
  enum class Kind { kFinite, kInfinity, kNan, kUnused };
  Kind kind = Kind::kFinite;
  bool negative = false;
  double magnitude = 0;  // read only when finite
};

Real FromFloat32(uint32_t bits);
Real FromFloat64(uint64_t bits);

// Where a magnitude lies among those of a format, whose exponent range goes on without bound.
// Positions count the values upward; the position of a value is its positive code.
struct Place {
  int64_t position;  // of the largest value <= x; -1 for 0 in a format without zero
  double distance;   // x - that value; 0 means that x is a value
  double gap;        // from that value to the next
};

// The non-negative values of a format, listed.
class Grid {
 public:
  explicit Grid(const Format& format);

  const Format& format() const { return format_; }
  // Position of the first value beyond the largest; of negative numbers one more where the format
  // has a lowest number.
  int64_t end() const { return int64_t{format_.max_code} + 1; }
  int64_t end(bool negative) const { return end() + (negative && format_.lowest ? 1 : 0); }
  // The value at a position from 0 (-1 where there is no zero) to end(true).
  double Value(int64_t position) const;
  // The place of x >= 0, x finite. Everything from Value(end(true)) on is placed exactly there.
  Place Locate(double x) const;

 private:
  Place LocateByScaling(double x) const;

  Format format_;
  std::vector<double> values_;  // positions 0 .. end(true), or empty when there are too many
};

// The grid of the format of that name (FindFormat), built once. Not for several threads at once.
const Grid& GridOf(std::string_view format);

// Exact meaning of a whole code.
Real DecodeCode(const Grid& grid, uint32_t code);
// The same as a float32, which holds every value. NaN is one NaN.
float ValueOf(const Grid& grid, uint32_t code);

// floor(d / g 2^bits), and how the rest of d / g 2^bits compares with one half.
struct ScaledFraction {
  enum class Rest { kZero, kBelowHalf, kHalf, kAboveHalf };
  uint64_t floor;
  Rest rest;
};
// Requires 0 <= distance < gap and bits <= 33.
ScaledFraction ScaleFraction(double distance, double gap, int bits);

// The number of words R, out of 2^random_bits, for which stochastic rounding goes away from zero.
uint64_t WordsThatRoundAway(const Place& place, Variant variant, int random_bits);

// Whether the magnitude at `place` is rounded away from zero.
bool RoundsAway(const Place& place, bool negative, const Setting& setting, uint32_t random);

// The code of the value at `position` with that sign, once every rule about overflow, zeros and
// signs has been applied.
uint32_t Finish(const Grid& grid, int64_t position, bool negative, const Setting& setting);

// The code of x where `place` is that of its magnitude (read only when x is finite).
uint32_t EncodeAt(
    const Grid& grid, const Real& x, const Place& place, const Setting& setting, uint32_t random);

uint32_t Encode(const Grid& grid, const Real& x, const Setting& setting, uint32_t random = 0);

// The value of the code of x.
float RoundFloat32(const Grid& grid, float x, const Setting& setting, uint32_t random = 0);

}  // namespace oracle
