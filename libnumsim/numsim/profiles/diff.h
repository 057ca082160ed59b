// The complete list of inputs on which two conversions differ.
#pragma once

#include <cstdint>
#include <vector>

#include "numsim/profiles/profile.h"

namespace numsim {

// A run of consecutive bit patterns of one sign, first <= last in magnitude, on which `a` gives one
// code throughout and `b` another. As long as possible. NaN patterns are runs like any other, and
// no run holds both NaN patterns and others.
struct DifferingInterval {
  uint64_t first;  // source bits, sign included
  uint64_t last;
  uint32_t code_a;
  uint32_t code_b;

  uint64_t Count() const { return last - first + 1; }
  friend bool operator==(const DifferingInterval&, const DifferingInterval&) = default;
};

struct Difference {
  std::vector<DifferingInterval> intervals;  // positive ones first, then negative, each ascending
  uint64_t differing = 0;      // patterns, out of 2^32 (float32) or 2^64 (float64, modulo 2^64)
  uint64_t differing_nan = 0;  // those of them that are NaN patterns

  friend bool operator==(const Difference&, const Difference&) = default;
};

// Exact and complete: splits both conversions' monotone ranges at every change of code by
// bisection. Throws Error unless source types are equal and formats are equally wide and of at most
// 20 bits. Codes are compared as bit patterns. A stochastic conversion is compared for the one
// random register `word`, as its first element reads it (ProfileConversion::RandomOfWord).
Difference Diff(const ProfileConversion& a, const ProfileConversion& b, uint32_t word = 0);

// The same by trying all 2^32 float32 patterns, on all threads: what proves the other. Throws Error
// likewise, and for float64.
Difference DiffByBruteForce(const ProfileConversion& a,
                            const ProfileConversion& b,
                            uint32_t word = 0);

}  // namespace numsim
