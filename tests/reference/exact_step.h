// base + factor * direction of float32 numbers, exact: what a step is before its one rounding.
#pragma once

#include <bit>
#include <cstdint>

#include "tests/reference/exact_number.h"

namespace numsim {

inline oracle::ExactNumber ExactOf(float x) {
  const oracle::Real real = oracle::FromFloat32(std::bit_cast<uint32_t>(x));
  oracle::ExactNumber exact;
  exact.kind = real.kind;
  exact.negative = real.negative;
  if (real.kind != oracle::Real::Kind::kFinite || real.magnitude == 0) return exact;
  const oracle::Dyadic dyadic = oracle::ToDyadic(real.magnitude);
  const int zeros = std::countr_zero(dyadic.significand);
  exact.numerator = dyadic.significand >> zeros;
  exact.exponent = dyadic.exponent + zeros;
  return exact;
}

// A zero sum of addends of different signs is +0.
inline oracle::ExactNumber ExactStep(float base, float factor, float direction) {
  const oracle::ExactNumber addends[] = {ExactOf(base),
                                         oracle::ExactProduct(ExactOf(factor), ExactOf(direction))};
  oracle::ExactNumber sum = oracle::ExactSum(addends);
  if (sum.sign_by_mode) sum.sign_by_mode = sum.negative = false;
  return sum;
}

}  // namespace numsim
