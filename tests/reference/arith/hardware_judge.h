// The processor's float64 arithmetic as a judge of fp16 and bf16 results: fast enough for all
// pairs.
//
// A sum, product or quotient of such numbers, rounded to float64 and then to their format, equals
// the exact one rounded once: 53 bits are more than twice theirs and two [Figueroa]. Whether a code
// is right is then a comparison with the two ends of the interval of float64 numbers that become
// it, which the oracle of conversions supplies.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "numsim/rounding/flags.h"
#include "tests/reference/oracle.h"

namespace numsim {

enum class HardwareOperation { kAdd, kMultiply, kDivide };

// Round-to-nearest-even, tininess after rounding. Const calls may run in parallel.
class HardwareJudge {
 public:
  // Requires a format of up to 16 bits in IEEE 754's pattern.
  explicit HardwareJudge(std::string_view format);

  // Whether that is the result of a op b, and are its flags.
  bool IsRight(HardwareOperation operation, uint32_t a, uint32_t b, Rounded result) const;

 private:
  Flags FlagsOf(double magnitude, bool exact, uint32_t code) const;

  oracle::Format format_;
  std::vector<double> values_;       // of every code; NaN for NaNs
  std::vector<uint8_t> signalling_;  // of every code
  // Of every positive code up to infinity: the ends of its interval, inclusive.
  std::vector<double> low_;
  std::vector<double> high_;
  double tiny_below_;  // magnitudes below are tiny
};

}  // namespace numsim
