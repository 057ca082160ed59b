// Stochastic rounding of float32 in fewer operations than the rounding rule. Re-included per target.
#if defined(NUMSIM_CAST_STOCHASTIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_STOCHASTIC_INL_H_
#undef NUMSIM_CAST_STOCHASTIC_INL_H_
#else
#define NUMSIM_CAST_STOCHASTIC_INL_H_
#endif

#include "hwy/highway.h"
#include "numsim/cast/internal/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns whether EncodeByCarry serves a plan that rounds stochastically.
constexpr bool ServesCarry(const EncodePlan& plan) {
  return HWY_TARGET <= HWY_AVX2 && plan.rounding.variant == StochasticVariant::kA &&
         plan.range_f32 == ExponentRange::kNarrower && plan.format.subnormal_shift == 0 &&
         plan.uniform_specials && !plan.unsigned_zero;
}

// Returns the codes of words. Requires ServesCarry(plan). Takes arguments as EncodeWord does.
//
// With v and k of the rule, it rounds away where the fraction plus R carries, both seen as words whose
// top bit is worth a half. A fraction of k <= 32 bits has zeros below, so the top k bits of R decide,
// and added to v they carry into the ordinal by themselves:
//   ordinal = (v + (R >> (32 - k))) >> k
// From k = 32 on |x| is below the smallest value, and the ordinal is the carry of (v >> (k - 32)) + R.
// These targets shift a word by 32 or more, or by a negative count, to zero. So either of both lines
// gives zero where the other one holds, except that at k = 32 the first gives zero too.
template <class L>
HWY_INLINE typename L::Word EncodeByCarry(const L& l,
                                          const EncodePlan& plan,
                                          typename L::Word bits,
                                          typename L::Word random) {
  static_assert(L::kWordBits == 32);
  constexpr int kM = L::kMantissaBits;
  const int s = kM - plan.mantissa_bits;
  const int e_min = plan.min_exponent + L::kBias;
  const auto word = [&](int x) HWY_ATTR { return l.Set(static_cast<uint32_t>(x)); };
  const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
  const auto exponent = l.ShrBy(magnitude, kM);
  const auto significand = l.Or(l.And(magnitude, word((1 << kM) - 1)), word(1 << kM));
  const auto normal = l.GtI(magnitude, word((e_min << kM) - 1));
  const auto v = l.Select(normal, l.Sub(magnitude, word((e_min - 1) << kM)), significand);
  const auto left = l.MinI(l.Sub(exponent, word(s + e_min - 32)), word(32 - s));  // 32 - k
  const auto r = l.And(random, l.TopBits(plan.rounding.random_bits));
  const auto sum = l.Shr(l.Add(v, l.Shr(r, left)), l.Sub(word(32), left));
  const auto far_below = l.Shr(v, l.Sub(l.Set(0), left));
  const auto ordinal = l.Select(l.GtU(far_below, l.Not(r)), l.Set(1), sum);
  return FinishUniform(l, plan, bits, magnitude, ordinal);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
