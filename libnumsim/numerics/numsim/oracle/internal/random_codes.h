// Building blocks of the cases of random:N: random bits per column, and finite codes with a chosen
// exponent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "numsim/formats/format_spec.h"
#include "numsim/oracle/internal/case_makers.h"
#include "numsim/oracle/operation.h"
#include "numsim/random/streams.h"

namespace numsim {

// The bits of column c come from stream kRandomCaseStream + c of the seed, those that the columns
// of a case share from the streams below. All are distinct from the streams of experiments, which
// are small numbers.
inline constexpr uint64_t kRandomCaseStream = uint64_t{0x7EC7} << 32;
inline constexpr uint64_t kSharedStream = kRandomCaseStream - 1;
inline constexpr uint64_t kSecondSharedStream = kRandomCaseStream - 2;

inline uint64_t Bits(const PhiloxCounter& words) { return words[0] | uint64_t{words[1]} << 32; }
inline uint64_t Masked(uint64_t bits, int width) { return bits & LargestOf(width); }

// Returns a uniformly distributed integer of [low, high]. Requires low <= high.
inline int UniformBetween(int low, int high, uint32_t word) {
  return low + static_cast<int>((uint64_t{word} * static_cast<uint64_t>(high - low + 1)) >> 32);
}

// The exponents of the first and of the last exponent field that has a finite value. The first one
// belongs to the subnormals, if the format has any.
inline int FirstExponent(const FormatSpec& format) { return -int{format.bias}; }
inline int LastExponent(const FormatSpec& format) {
  return static_cast<int>(format.MaxFiniteCode() >> format.mantissa_bits) - format.bias;
}

// Returns the finite code with this exponent, clamped to the format's range, and with mantissa and
// sign from `bits`.
inline uint64_t FiniteCode(const FormatSpec& format, int exponent, uint64_t bits) {
  const auto field = static_cast<uint32_t>(
      std::clamp(exponent, FirstExponent(format), LastExponent(format)) + format.bias);
  const auto mantissa = static_cast<uint32_t>(Masked(bits, 23) >> (23 - format.mantissa_bits));
  const uint32_t magnitude =
      std::min(field << format.mantissa_bits | mantissa, format.MaxFiniteCode());
  const bool negative = (bits >> 63) != 0 && (magnitude != 0 || format.zero == Zero::kSigned);
  return SignedCode(format, magnitude, negative);
}

}  // namespace numsim
