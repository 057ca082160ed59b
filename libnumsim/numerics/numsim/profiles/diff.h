// The complete list of inputs on which two conversions differ.
#pragma once

#include <cstdint>
#include <vector>

#include "numsim/profiles/profile.h"

namespace numsim {

// A maximal run of consecutive source bit patterns of one sign on which conversion `a` gives one
// code throughout and conversion `b` gives another. first <= last in magnitude. NaN patterns form
// runs like any others, but no run contains both NaN patterns and other patterns.
struct DifferingInterval {
  uint64_t first;  // source bits, sign included
  uint64_t last;
  uint32_t code_a;
  uint32_t code_b;

  // Returns the number of inputs of the interval.
  uint64_t Count() const { return last - first + 1; }
  friend bool operator==(const DifferingInterval&, const DifferingInterval&) = default;
};

// All inputs on which two conversions differ.
struct Difference {
  std::vector<DifferingInterval> intervals;  // positive, then negative, by ascending magnitude
  uint64_t differing = 0;      // number of patterns, of 2^32 (float32) or 2^64 (float64); mod 2^64
  uint64_t differing_nan = 0;  // number of NaN patterns among them

  friend bool operator==(const Difference&, const Difference&) = default;
};

// How results are compared.
enum class DiffBy : uint8_t {
  kCode,   // as bit patterns; the formats must have the same width
  kValue,  // as numbers: all NaNs are equal, and so are -0 and +0; the formats may differ
};

// Returns all inputs on which the results of `a` and `b` differ. The result is exact and complete:
// bisection finds every change of code within the monotone ranges of both conversions. A stochastic
// conversion is compared for the single random register `word`, as its first element reads it
// (ProfileConversion::RandomOfWord). Throws Error unless the source types are equal, the formats
// have at most 20 bits and, for DiffBy::kCode, the same width.
Difference Diff(const ProfileConversion& a,
                const ProfileConversion& b,
                uint32_t word = 0,
                DiffBy by = DiffBy::kCode);

// Returns what Diff returns, computed by trying all 2^32 float32 patterns on all threads; it serves
// to verify Diff. Throws Error as Diff does, and also for float64.
Difference DiffByBruteForce(const ProfileConversion& a,
                            const ProfileConversion& b,
                            uint32_t word = 0,
                            DiffBy by = DiffBy::kCode);

}  // namespace numsim
