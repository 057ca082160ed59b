// Elementary functions in arithmetic of a chosen number of bits, where no bound and no identity gives
// the result.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "numsim/arith/elementary.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// A finite operand other than zero: x = (-1)^negative m 2^e. m has up to 24 bits.
struct ElementaryArgument {
  bool negative;
  uint64_t m;
  int e;

  int Binade() const { return e + static_cast<int>(std::bit_width(m)) - 1; }
  bool IsBelow(int power) const { return Binade() < power; }   // |x| < 2^power
  bool IsAtLeast(int power) const { return !IsBelow(power); }  // |x| >= 2^power
};

// Numbers of 64 times so many bits are used one after another, until one decides.
inline constexpr int kElementaryLimbs[] = {2, 4, 8};

// Returns the value rounded to odd, or nothing if numbers of 64 * limbs bits leave a doubt about one
// of the bits that are kept. Requires a number of kElementaryLimbs and an irrational value with
// |x| < 2^9, for kTanh |x| < 2^5, for kGelu and kGeluTanh |x| < 2^4; x > 0 for logarithms.
std::optional<Unrounded> EvaluateElementary(ElementaryFunction function,
                                            const ElementaryArgument& x,
                                            int limbs) noexcept;

}  // namespace numsim
