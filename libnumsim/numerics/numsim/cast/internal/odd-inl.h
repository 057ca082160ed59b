// Rounding to odd in vectors of floats. Re-included per target.
#if defined(NUMSIM_CAST_ODD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_ODD_INL_H_
#undef NUMSIM_CAST_ODD_INL_H_
#else
#define NUMSIM_CAST_ODD_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the exact result rounded to odd, given `nearest`, the float nearest to it, and a number
// `error` with the sign of (exact result - nearest). Returns `nearest` where error is zero or NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ToOdd(D d, V nearest, V error) {
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  const auto bits = hn::BitCast(du, nearest);
  const auto zero = hn::Zero(d);
  // The magnitude of the exact result is smaller when the signs differ.
  const auto signs = hn::Xor(bits, hn::BitCast(du, error));
  const auto smaller = hn::ShiftRight<8 * sizeof(U) - 1>(signs);
  const auto odd = hn::Or(hn::Sub(bits, smaller), hn::Set(du, U{1}));
  const auto inexact = hn::Or(hn::Lt(error, zero), hn::Lt(zero, error));
  return hn::IfThenElse(inexact, hn::BitCast(d, odd), nearest);
}

// Returns a + b rounded to odd, given the nearest `sum`. Knuth's two-sum gives the exact error.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SumToOdd(D d, V a, V b, V sum) {
  const auto b_part = hn::Sub(sum, a);
  const auto a_part = hn::Sub(sum, b_part);
  return ToOdd(d, sum, hn::Add(hn::Sub(a, a_part), hn::Sub(b, b_part)));
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
