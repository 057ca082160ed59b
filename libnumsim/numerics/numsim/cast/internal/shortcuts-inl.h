// Conversions to 8-bit codes that take fewer operations than the rounding rule. Re-included per
// target.
#if defined(NUMSIM_CAST_SHORTCUTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_SHORTCUTS_INL_H_
#undef NUMSIM_CAST_SHORTCUTS_INL_H_
#else
#define NUMSIM_CAST_SHORTCUTS_INL_H_
#endif

#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "numsim/cast/internal/lanes-inl.h"
#include "numsim/cast/internal/subnormal_gap-inl.h"
#include "numsim/formats/named_formats.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The prefetch distance in elements. The processor's own prefetch stops at every page.
constexpr size_t kPrefetchAhead = 1024;

// Stores a vector of codes in the element type of the output.
template <class D32>
HWY_INLINE void StoreCodes(D32 d32, hn::Vec<D32> code, uint8_t* HWY_RESTRICT out) {
  (void)d32;
  const hn::Rebind<uint8_t, D32> d8;
  hn::StoreU(hn::TruncateTo(d8, code), d8, out);
}
template <class D32>
HWY_INLINE void StoreCodes(D32 d32, hn::Vec<D32> code, uint16_t* HWY_RESTRICT out) {
  (void)d32;
  const hn::Rebind<uint16_t, D32> d16;
  hn::StoreU(hn::TruncateTo(d16, code), d16, out);
}
template <class D32>
HWY_INLINE void StoreCodes(D32 d32, hn::Vec<D32> code, uint32_t* HWY_RESTRICT out) {
  hn::StoreU(code, d32, out);
}

// The sources of an encoding loop: the elements of the array, or their products with one factor per run
// of elements or with one factor per element, rounded to float32. Products require the default
// floating-point environment.
struct Unscaled {
  static constexpr bool kDefaultEnvironment = false;
  using Element = float;
  size_t ahead = kPrefetchAhead;

  template <class DF>
  HWY_INLINE hn::Vec<DF> Load(DF df, const float* in, size_t) const {
    return hn::LoadU(df, in);
  }
};
// Element i has the factor factors[i >> log_run]. A run has as many elements as a vector, or more.
struct ScaledByRuns {
  static constexpr bool kDefaultEnvironment = true;
  using Element = float;
  const float* factors;
  int log_run;
  size_t ahead;

  template <class DF>
  HWY_INLINE hn::Vec<DF> Load(DF df, const float* in, size_t i) const {
    return hn::Mul(hn::LoadU(df, in), hn::Set(df, factors[i >> log_run]));
  }
};
struct ScaledByEach {
  static constexpr bool kDefaultEnvironment = true;
  using Element = float;
  const float* factors;
  size_t ahead;

  template <class DF>
  HWY_INLINE hn::Vec<DF> Load(DF df, const float* in, size_t i) const {
    return hn::Mul(hn::LoadU(df, in), hn::LoadU(df, factors + i));
  }
};

// Rounds x to the nearest integer, ties to even. Returns words whose low byte is that integer in
// two's complement. Requires |x| <= 127.
template <bool kDefaultEnvironment, class DF>
HWY_INLINE hn::Vec<hn::RebindToUnsigned<DF>> NearestInt8(DF df, hn::Vec<DF> x) {
  const hn::RebindToSigned<DF> di;
  const hn::RebindToUnsigned<DF> du;
  if constexpr (kDefaultEnvironment) {
    // The sum lies in the binade of 2^23, where all floats are integers, so it is rounded to one.
    return hn::BitCast(du, hn::Add(x, hn::Set(df, 0x1.8p23f)));
  }
  // Fixed point with 24 fractional bits, which int32 holds. The conversion is exact for magnitudes
  // of at least 1/2, since float32 has 24 significant bits. Smaller magnitudes are truncated and
  // round to zero in any case. The processor's rounding mode does not matter.
  const auto fixed = hn::ConvertTo(di, hn::Mul(x, hn::Set(df, 0x1p24f)));
  const auto odd = hn::And(hn::ShiftRight<24>(fixed), hn::Set(di, 1));
  const auto below_half = hn::Set(di, (1 << 23) - 1);
  return hn::BitCast(du, hn::ShiftRight<24>(hn::Add(hn::Add(fixed, below_half), odd)));
}

// Encodes whole vectors to int8, nearest even, and returns the number of elements encoded. Equals
// the rule for all float32 (tests/cast/int8_exhaustive_test.cc).
template <class Source>
HWY_NOINLINE size_t EncodeInt8(const EncodePlan& plan,
                               const Source source,
                               const float* HWY_RESTRICT in,
                               size_t n,
                               uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<float> df;
  const hn::ScalableTag<uint32_t> du;
  const size_t lanes = hn::Lanes(df);
  const auto max = hn::Set(df, static_cast<float>(plan.max_ordinal));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + source.ahead);
    const auto x = source.Load(df, in + i, i);
    // NaN becomes the largest value. Min would give NaN on some targets.
    const auto below = hn::IfThenElse(hn::Lt(x, max), x, max);
    const auto bounded = hn::Max(below, hn::Neg(max));
    StoreCodes(du, NearestInt8<Source::kDefaultEnvironment>(df, bounded), out + i);
  }
  return i;
}

#if HWY_TARGET <= HWY_AVX3
// Deterministic rounding to at most 6 significant bits, in 16-bit lanes. float32 is first truncated
// to 16 bits with a sticky last bit (rounded to odd), which leaves 8 significant bits. Rounding to
// odd with two bits more than the target has, then in any of these modes, equals rounding once
// [Boldo]; subnormals of the target need fewer bits still. A vector holds twice as many elements as
// with the 32-bit rule.
constexpr int kStickyMantissaBits = 5;

// True if EncodeSticky serves the plan. The format has a zero, and its smallest value is far above
// the subnormals of float32. (The plan's range_f32 is kGeneral in directed modes, in which the rule
// does not tell zero from the others below it.) The middle of a subnormal gap has
// m + subnormal_shift + 1 bits, which must be fewer than the 8 significant bits.
constexpr bool ServesSticky(const EncodePlan& plan) {
  const FormatSpec& format = plan.format;
  const bool subnormal_gap = format.subnormal_shift != 0;
  const bool narrower = format.zero != Zero::kNone && format.SubnormalExponent() - 34 > -126;
  return narrower && plan.mantissa_bits <= kStickyMantissaBits &&
         (!subnormal_gap || plan.mantissa_bits + format.subnormal_shift <= 6);
}

// Encodes whole vectors in kMode and returns the number of elements encoded. Requires
// ServesSticky(plan).
template <RoundingMode kMode, bool kSubnormalGap, class Source>
HWY_NOINLINE size_t EncodeSticky(const EncodePlan& plan_ref,
                                 const Source source,
                                 const typename Source::Element* HWY_RESTRICT in,
                                 size_t n,
                                 uint8_t* HWY_RESTRICT out) {
  EncodePlan plan = plan_ref;
  plan.rounding.mode = kMode;  // the compiler selects the mode once, not for every vector
  constexpr RuleMode kRule = RuleModeOf(kMode);
  const hn::ScalableTag<float> df;
  const hn::ScalableTag<uint16_t> d16;
  const hn::Half<hn::ScalableTag<uint8_t>> d8;
  using Lanes = StickyBf16Lanes<decltype(d16)>;
  const Lanes lanes;
  const std::conditional_t<kSubnormalGap, CloserOf<kRule, Lanes>, NoCloser> close(plan);
  if constexpr (kSubnormalGap) plan = WithoutSubnormalGap(plan);
  const size_t half = hn::Lanes(d16) / 2;
  size_t i = 0;
  for (; i + 2 * half <= n; i += 2 * half) {
    for (size_t line = 0; line < 2 * half; line += 64 / sizeof(*in)) {
      hwy::Prefetch(in + i + source.ahead + line);
    }
    const auto a = hn::BitCast(d16, source.Load(df, in + i, i));
    const auto b = hn::BitCast(d16, source.Load(df, in + i + half, i + half));
    const auto high = hn::ConcatOdd(d16, b, a);
    const auto low = hn::ConcatEven(d16, b, a);
    auto bits = hn::Or(high, hn::Min(low, hn::Set(d16, uint16_t{1})));
    bits = close(lanes, bits, bits);
    const auto code = EncodeNarrower<kRule>(lanes, plan, bits, bits);
    hn::StoreU(hn::TruncateTo(d8, code), d8, out + i);
  }
  return i;
}

// Calls EncodeSticky in the plan's mode.
template <bool kSubnormalGap, class Source>
size_t EncodeStickyInMode(const EncodePlan& plan,
                          const Source source,
                          const typename Source::Element* in,
                          size_t n,
                          uint8_t* out) {
  switch (plan.rounding.mode) {
    case RoundingMode::kNearestEven:
      return EncodeSticky<RoundingMode::kNearestEven, kSubnormalGap>(plan, source, in, n, out);
    case RoundingMode::kNearestAway:
      return EncodeSticky<RoundingMode::kNearestAway, kSubnormalGap>(plan, source, in, n, out);
    case RoundingMode::kTowardZero:
      return EncodeSticky<RoundingMode::kTowardZero, kSubnormalGap>(plan, source, in, n, out);
    case RoundingMode::kUp:
      return EncodeSticky<RoundingMode::kUp, kSubnormalGap>(plan, source, in, n, out);
    case RoundingMode::kDown:
      return EncodeSticky<RoundingMode::kDown, kSubnormalGap>(plan, source, in, n, out);
    case RoundingMode::kToOdd:
      return EncodeSticky<RoundingMode::kToOdd, kSubnormalGap>(plan, source, in, n, out);
    case RoundingMode::kStochastic:
      break;
  }
  return 0;
}

template <class Source>
size_t EncodeStickyAny(const EncodePlan& plan,
                       const Source source,
                       const typename Source::Element* in,
                       size_t n,
                       uint8_t* out) {
  if (plan.format.subnormal_shift == 0) {
    return EncodeStickyInMode<false>(plan, source, in, n, out);
  }
  return EncodeStickyInMode<true>(plan, source, in, n, out);
}
#endif

// Encodes a prefix of `in` by a shortcut, if there is one for the plan. Returns its length,
// possibly 0. The caller encodes the other elements by the rule.
template <class Source>
size_t EncodeShortcut(
    const EncodePlan& plan, const Source source, const float* in, size_t n, uint8_t* out) {
  if (plan.format == kInt8 && plan.rounding.mode == RoundingMode::kNearestEven) {
    return EncodeInt8(plan, source, in, n, out);
  }
#if HWY_TARGET <= HWY_AVX3
  if (ServesSticky(plan)) return EncodeStickyAny(plan, source, in, n, out);
#endif
  return 0;
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
