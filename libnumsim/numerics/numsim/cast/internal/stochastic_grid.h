// Stochastic rounding of float64 sums to the values of a format by one addition, without codes.
#pragma once

#include <cstdint>
#include <optional>

#include "numsim/rounding/encode_plan.h"

namespace numsim {

// The constants that round a magnitude in float64, given by its bits, to a value of a format, by
// variant A with saturation. Example, bf16 with 16 random bits: a float64 has 45 bits more than
// bf16. The random bits are added to the upper 16 of these 45, and then the 45 are cleared. The sum
// carries into the bits of bf16 if the fraction, cut to 16 bits, is above 2^16 - 1 - R: the
// definition of RoundStochastic (rounding/shared/encode_rule.inc). A carry out of the mantissa
// moves into the exponent by itself.
struct StochasticGrid {
  int cut = 0;  // mantissa bits of float64 that the format lacks
  int random_bits = 0;
  // Bits at the low end that do not decide. Unless they are all zero, a sum has the same decisive
  // bits before and after it is rounded to float64. At most 20, so that they are zero in every NaN
  // that comes from float32 operands.
  int undecided_bits = 0;
  double min_normal = 0;      // the smallest normal value
  double max = 0;             // the largest value
  bool negative_zero = true;  // the format has a negative zero
};

// Returns the grid of the plan's format, or nothing if there is none. The plan must round
// stochastically by variant A with saturation. The format must be signed and have a zero and no
// subnormal gap. float64 must have at least two bits more than the format's mantissa and the random
// bits together.
std::optional<StochasticGrid> MakeStochasticGrid(const EncodePlan& plan) noexcept;

}  // namespace numsim
