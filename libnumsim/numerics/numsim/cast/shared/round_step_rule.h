// RoundStep (round_step.h) for one element, on host and device.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/cast/internal/nearest_grid.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim {

// The arithmetic that rounds the steps of a plan.
enum class StepPath : uint8_t {
  kGrid,            // nearest even in float32 by NearestGrid; a tie looks at the exact sum
  kNearest,         // nearest even, from the sum in float64
  kStochastic,      // stochastic rounding, from the sum in float64
  kOther,           // the other modes, from the sum in float64
  kStochasticGrid,  // variant A to the values of a NearestGrid, by Float64OnGrid
};

// The constants of Float64OnGrid, in the upper words of float64 numbers.
struct UpperWordGrid {
  uint32_t least_normal = 0;  // the smallest normal value
  uint32_t fraction = 0;      // mask of the mantissa bits that the format lacks
  int random_shift = 0;       // from random bits to the first bits below the format's last one
};

// The constants that rounding a step needs.
struct StepRule {
  EncodePlan plan;
  NearestGrid grid;     // read under kGrid and kStochasticGrid only
  UpperWordGrid upper;  // as grid
  StepPath path = StepPath::kNearest;
};

// True if the functions below serve the plan. The format must be signed and have a zero but no
// subnormal gap. Its nonzero values must not be float32 subnormals unless its smallest normal
// exponent is that of float32. Stochastic rounding must not use more random bits than float64 has
// bits to spare.
bool HasStepRule(const EncodePlan& plan);

// Returns the constants for the plan. Requires HasStepRule(plan).
StepRule MakeStepRule(const EncodePlan& plan);

// Returns x rounded to the nearest value of the grid, ties to even, saturating. Requires x not NaN.
NUMSIM_INLINE float NearestOnGrid(const NearestGrid& grid, float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits & 0x80000000u;
  const uint32_t magnitude = bits ^ sign;
  const uint32_t mask = (1u << grid.cut) - 1;
  const float a = std::bit_cast<float>(magnitude);
  const float small = (a + grid.shift) - grid.shift;
  const uint32_t last = (magnitude >> grid.cut) & 1;
  const float large = std::bit_cast<float>((magnitude + mask / 2 + last) & ~mask);
  const float rounded = a < grid.min_normal ? small : large;
  const float bounded = rounded < grid.max ? rounded : grid.max;
  const float value = std::bit_cast<float>(std::bit_cast<uint32_t>(bounded) | sign);
  return grid.negative_zero ? value : value + 0.0f;
}

// True if x lies halfway between two values of the grid.
NUMSIM_INLINE bool IsTieOnGrid(const NearestGrid& grid, float x) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu;
  const float a = std::bit_cast<float>(magnitude);
  const uint32_t mask = (1u << grid.cut) - 1;
  const float small = (a + grid.shift) - grid.shift;
  const float distance = a < small ? small - a : a - small;
  return a < grid.min_normal ? distance == grid.half_spacing : (magnitude & mask) == mask / 2 + 1;
}

// Returns base + factor * direction in float64, rounded to odd. Requires finite operands.
NUMSIM_INLINE double OddStepSum(float base, float direction, float factor) {
  const double product = static_cast<double>(direction) * static_cast<double>(factor);  // exact
  return OddSum(static_cast<double>(base), product);
}

// Returns the step rounded on the grid. Rounds the float32 nearest to the exact sum. If that
// float32 is a tie of the grid, its last bit, which is even, is first made odd toward the exact sum
// [Boldo]. Requires the path kGrid and a sum that is not NaN.
NUMSIM_INLINE float StepOnGrid(const NearestGrid& grid, float base, float direction, float factor) {
  float x = std::fma(direction, factor, base);
  if (IsTieOnGrid(grid, x)) {
    const double exact = OddStepSum(base, direction, factor);
    const double nearest = static_cast<double>(x);
    if (exact != nearest) {
      const uint32_t smaller = (exact < nearest) == (nearest > 0) ? 1 : 0;  // in magnitude
      x = std::bit_cast<float>((std::bit_cast<uint32_t>(x) - smaller) | 1u);
    }
  }
  return NearestOnGrid(grid, x);
}

// Returns the value of a code. Requires a format for which DecodesInLanes holds, or fp32.
NUMSIM_INLINE float StepValue(const FormatSpec& format, uint32_t code) {
  if (format.Bits() == 32) return std::bit_cast<float>(code);
  return std::bit_cast<float>(scalar::DecodeWord(scalar::F32Lanes{}, format, code));
}

// Returns the value of the plan's format that x rounds to. Requires x exact or rounded to odd.
// `random` holds the random bits in its low end, as for EncodeF64.
template <RuleMode kMode>
NUMSIM_INLINE float RoundFloat64(const EncodePlan& plan, double x, uint32_t random) {
  // All subnormals of float64 are far below half the smallest nonzero value of any format.
  constexpr ExponentRange kRange =
      kMode == RuleMode::kOther ? ExponentRange::kGeneral : ExponentRange::kNarrower;
  uint64_t top = 0;
  if constexpr (kMode == RuleMode::kStochastic) {
    top = static_cast<uint64_t>(random) << (64 - plan.rounding.random_bits);
  }
  const uint64_t code =
      scalar::EncodeWord<kMode, kRange>(scalar::F64Lanes{}, plan, std::bit_cast<uint64_t>(x), top);
  return StepValue(plan.format, static_cast<uint32_t>(code));
}

// Returns x rounded to the grid, saturating: to nearest, ties to even, or kStochastic with the bits
// of `random`. Requires the path kGrid or kStochasticGrid and a finite x that is exact or rounded to
// odd; for kStochastic x may also be rounded toward zero.
//
// All that is above the format's last bit, and the first bits below it, lie in the upper word of x.
// Below the normal values, the smallest of them is added, so that the last bit stays in its place.
template <bool kStochastic>
NUMSIM_INLINE float Float64OnGrid(const StepRule& rule, double x, uint32_t random) {
  constexpr uint32_t kSign = 0x80000000u;
  constexpr uint32_t kGreatest = 0x47EFFFFFu;  // the upper word of the greatest float32
  constexpr uint32_t kRebias = (1023 - 127) << 20;
  const UpperWordGrid& grid = rule.upper;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const auto sign = static_cast<uint32_t>(bits >> 32) & kSign;
  uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const bool small = static_cast<uint32_t>(magnitude >> 32) < grid.least_normal;
  if (small) {
    const double least = std::bit_cast<double>(uint64_t{grid.least_normal} << 32);
    const double a = std::bit_cast<double>(magnitude);
    magnitude = std::bit_cast<uint64_t>(kStochastic ? SumTowardZero(a, least) : OddSum(a, least));
  }
  uint32_t word = 0;
  if constexpr (kStochastic) {
    const uint64_t sum = magnitude + (static_cast<uint64_t>(random) << grid.random_shift);
    word = static_cast<uint32_t>(sum >> 32);
  } else {
    word = static_cast<uint32_t>(magnitude >> 32);
    const uint32_t last = (word >> (rule.grid.cut - 3)) & 1;
    word |= static_cast<uint32_t>(magnitude) != 0 ? 1 : 0;
    word += (grid.fraction >> 1) + last;
  }
  word &= ~grid.fraction;
  word = word < kGreatest ? word : kGreatest;
  float a = std::bit_cast<float>((word - kRebias) << 3);
  if (small) a -= rule.grid.min_normal;
  a = a < rule.grid.max ? a : rule.grid.max;
  const float value = std::bit_cast<float>(std::bit_cast<uint32_t>(a) | sign);
  return rule.grid.negative_zero ? value : value + 0.0f;
}

// Returns x rounded to the nearest value. Requires a finite x that is exact or rounded to odd.
template <StepPath kPath>
NUMSIM_INLINE float NearestOfFloat64(const StepRule& rule, double x) {
  static_assert(kPath == StepPath::kGrid || kPath == StepPath::kNearest);
  if constexpr (kPath == StepPath::kGrid) {
    return Float64OnGrid<false>(rule, x, 0);
  } else {
    return RoundFloat64<RuleMode::kNearestEven>(rule.plan, x, 0);
  }
}

// Returns base + factor * direction rounded stochastically. `random` holds the random bits in its
// low end. Requires the path kStochasticGrid or kStochastic and finite operands.
template <StepPath kPath>
NUMSIM_INLINE float StochasticStep(
    const StepRule& rule, float base, float direction, float factor, uint32_t random) {
  static_assert(kPath == StepPath::kStochasticGrid || kPath == StepPath::kStochastic);
  if constexpr (kPath == StepPath::kStochasticGrid) {
    const double product = static_cast<double>(direction) * static_cast<double>(factor);  // exact
    const double sum = SumTowardZero(static_cast<double>(base), product);
    return Float64OnGrid<true>(rule, sum, random);
  } else {
    const double sum = OddStepSum(base, direction, factor);
    return RoundFloat64<RuleMode::kStochastic>(rule.plan, sum, random);
  }
}

// Returns base + factor * direction rounded to the nearest value. Requires the path kGrid or
// kNearest and finite operands.
template <StepPath kPath>
NUMSIM_INLINE float NearestStep(const StepRule& rule, float base, float direction, float factor) {
  static_assert(kPath == StepPath::kGrid || kPath == StepPath::kNearest);
  if constexpr (kPath == StepPath::kGrid) {
    return StepOnGrid(rule.grid, base, direction, factor);
  } else {
    const double sum = OddStepSum(base, direction, factor);
    return RoundFloat64<RuleMode::kNearestEven>(rule.plan, sum, 0);
  }
}

// Returns x rounded to the nearest value. Requires the path kGrid or kNearest and x not NaN.
template <StepPath kPath>
NUMSIM_INLINE float NearestValue(const StepRule& rule, float x) {
  static_assert(kPath == StepPath::kGrid || kPath == StepPath::kNearest);
  if constexpr (kPath == StepPath::kGrid) {
    return NearestOnGrid(rule.grid, x);
  } else {
    return RoundFloat64<RuleMode::kNearestEven>(rule.plan, static_cast<double>(x), 0);
  }
}

// Returns base + factor * direction rounded by the rule, for any operands. A NaN sum counts as a
// positive NaN. `random` holds the random bits in its low end and is read only if the rounding is
// stochastic.
template <StepPath kPath>
NUMSIM_INLINE float RoundStepOne(
    const StepRule& rule, float base, float direction, float factor, uint32_t random) {
  constexpr uint64_t kInfinityBits = 0x7FF0000000000000u;
  const double product = static_cast<double>(direction) * static_cast<double>(factor);
  const double sum = static_cast<double>(base) + product;
  const uint64_t magnitude = std::bit_cast<uint64_t>(sum) & ~(uint64_t{1} << 63);
  const bool finite = magnitude < kInfinityBits;
  if constexpr (kPath == StepPath::kGrid) {
    if (finite) return StepOnGrid(rule.grid, base, direction, factor);
  }
  if constexpr (kPath == StepPath::kStochasticGrid) {
    if (finite) return StochasticStep<kPath>(rule, base, direction, factor, random);
  }
  const double nan = std::bit_cast<double>(kInfinityBits | (kInfinityBits >> 1));
  const double x = finite ? OddSum(static_cast<double>(base), product)
                          : (magnitude == kInfinityBits ? sum : nan);
  constexpr bool kDraws = kPath == StepPath::kStochastic || kPath == StepPath::kStochasticGrid;
  constexpr RuleMode kMode = kDraws                      ? RuleMode::kStochastic
                             : kPath == StepPath::kOther ? RuleMode::kOther
                                                         : RuleMode::kNearestEven;
  return RoundFloat64<kMode>(rule.plan, x, random);
}

}  // namespace numsim
