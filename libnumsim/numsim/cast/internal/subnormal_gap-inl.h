// Closing and opening the subnormal gap of a format in vectors, by integer operations only:
// subnormal_gap_edges.h explains both. Re-included per target.
#if defined(NUMSIM_CAST_SUBNORMAL_GAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_SUBNORMAL_GAP_INL_H_
#undef NUMSIM_CAST_SUBNORMAL_GAP_INL_H_
#else
#define NUMSIM_CAST_SUBNORMAL_GAP_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "numsim/cast/internal/lanes-inl.h"
#include "numsim/cast/internal/subnormal_gap_edges.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Closes the gap for rounding to nearest even. The middle of the gap goes to the smallest normal,
// whose code is even. Also serves float32 truncated to fewer bits with a sticky last bit, if they
// hold the middle with one bit to spare.
template <class L>
HWY_INLINE typename L::Word CloseNearestEven(const L& l,
                                             const SubnormalGapEdges& subnormal_gap,
                                             typename L::Word bits) {
  const auto edge = [&](uint32_t f32) { return l.Set(f32 >> (23 - L::kMantissaBits)); };
  const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
  const auto sign = l.Sub(bits, magnitude);
  const auto lower =
      l.MinI(l.Add(magnitude, edge(subnormal_gap.raise)), edge(subnormal_gap.low_raised));
  const auto upper = l.MaxI(magnitude, edge(subnormal_gap.high));
  return l.Or(l.Select(l.GtI(edge(subnormal_gap.middle), magnitude), lower, upper), sign);
}

// Decides if stochastic rounding takes a magnitude in the subnormal gap to the upper end of the
// gap. Let nu = (|x| - low) / (high - low) = N / (2^f D), with integers N and D and f the number of
// fraction bits of low. Let R be the random bits at the top of a 32-bit word. Variant A rounds up
// when N / (2^f D) >= 1 - R / 2^32, that is, when
//   N 2^(32-f) + R D >= D 2^32.
// Variant B adds half a unit of the last random bit to R. Variant C does so too, but excludes
// equality if the random bits are odd, which subtracts 1 from twice the left side. Divided by
// 2^(32-f), all terms fit into a lane. The division discards only a fraction, and the right side is
// an integer.
struct StochasticSubnormalGap {
  SubnormalGapEdges subnormal_gap;
  int f;
  uint32_t denominator;
  int draw_bits;
  uint32_t half = 0;       // half a unit of the last random bit
  uint32_t half_low = 0;   // the same if it lies below the word, in halves of the word's last bit
  bool odd_keeps = false;  // variant C

  explicit StochasticSubnormalGap(const EncodePlan& plan)
      : subnormal_gap(plan.format),
        f(24 - plan.format.mantissa_bits),
        denominator(subnormal_gap.units),
        draw_bits(plan.rounding.random_bits) {
    if (plan.rounding.variant == StochasticVariant::kA) return;
    half = draw_bits < 32 ? uint32_t{1} << (31 - draw_bits) : 0;
    half_low = draw_bits < 32 ? 0 : 1;
    odd_keeps = plan.rounding.variant == StochasticVariant::kC;
  }

  // Returns the lanes that round up. The result is arbitrary for numbers outside the gap.
  template <class D32>
  HWY_INLINE hn::Mask<D32> RoundsUp(D32 d32, hn::Vec<D32> magnitude, hn::Vec<D32> random) const {
    const F32Lanes<D32> l;
    const hn::RebindToSigned<D32> di;
    const auto inside =
        l.MinI(l.MaxI(magnitude, l.Set(subnormal_gap.low)), l.Set(subnormal_gap.high - 1));
    const auto significand = l.Or(l.And(inside, l.Set(0x7FFFFF)), l.Set(0x800000));
    const auto binade = l.Sub(l.ShrBy(inside, 23), l.Set(subnormal_gap.low >> 23));
    const auto low = l.Set((subnormal_gap.low & 0x7FFFFF) | 0x800000);
    const auto numerator = l.Sub(l.Shl(significand, binade), low);

    const auto draw = l.Or(l.And(random, l.TopBits(draw_bits)), l.Set(half));
    const auto upper = hn::Mul(l.ShrBy(draw, 32 - f), l.Set(denominator));
    const auto rest_mask = l.Set((uint32_t{1} << (33 - f)) - 1);
    const auto rest = l.Or(l.And(l.ShlBy(draw, 1), rest_mask), l.Set(half_low));
    auto lower = hn::Mul(rest, l.Set(denominator));
    if (odd_keeps) {
      const auto odd = l.And(l.ShrBy(random, 32 - draw_bits), l.Set(1));
      lower = l.Sub(lower, odd);
    }
    const auto carried = hn::BitCast(d32, hn::ShiftRightSame(hn::BitCast(di, lower), 33 - f));
    const auto sum = l.Add(l.Add(numerator, upper), carried);
    return l.GtI(sum, l.Set((denominator << f) - 1));
  }
};

// Closes the gap for the other modes. Numbers in the gap go to its upper end in the lanes of
// `rounds_up`, else to its lower end. float32 subnormals and zero are left unchanged, since they
// lie far below every value of the format.
template <class D32>
HWY_INLINE hn::Vec<D32> CloseBy(const F32Lanes<D32>& l,
                                const SubnormalGapEdges& subnormal_gap,
                                hn::Vec<D32> bits,
                                hn::Mask<D32> rounds_up) {
  const auto magnitude = l.And(bits, l.Set(l.kMagnitudeMask));
  const auto sign = l.Sub(bits, magnitude);
  const auto normal = l.GtI(magnitude, l.Set(0x7FFFFF));
  const auto raised = l.Add(magnitude, l.Select(normal, l.Set(subnormal_gap.raise), l.Set(0)));
  const auto end = l.Select(rounds_up, l.Set(subnormal_gap.high), l.Set(subnormal_gap.low_raised));
  auto moved = l.Select(l.GtI(magnitude, l.Set(subnormal_gap.low)), end, raised);
  moved = l.Select(l.GtI(magnitude, l.Set(subnormal_gap.high - 1)), magnitude, moved);
  return l.Or(moved, sign);
}

// Returns the lanes in which a number in the gap rounds to the upper end, for the modes other than
// nearest even and stochastic.
template <class D32>
HWY_INLINE hn::Mask<D32> RoundsUpInSubnormalGap(const F32Lanes<D32>& l,
                                                const SubnormalGapEdges& subnormal_gap,
                                                RoundingMode mode,
                                                hn::Vec<D32> bits) {
  const auto zero = l.Set(0);
  const auto magnitude = l.And(bits, l.Set(l.kMagnitudeMask));
  switch (mode) {
    case RoundingMode::kNearestAway:
      return l.GtI(magnitude, l.Set(subnormal_gap.middle - 1));
    case RoundingMode::kUp:
      return l.Eq(magnitude, bits);
    case RoundingMode::kDown:
      return l.GtI(zero, bits);
    case RoundingMode::kTowardZero:
    case RoundingMode::kToOdd:        // the lower end's code is odd
    case RoundingMode::kNearestEven:  // CloseNearestEven
    case RoundingMode::kStochastic:   // StochasticSubnormalGap
      break;
  }
  return l.GtU(zero, bits);
}

// Function objects that close the gap of a vector of float32 bits, given the random words of its
// elements.
struct NearestCloser {
  SubnormalGapEdges subnormal_gap;

  explicit NearestCloser(const EncodePlan& plan) : subnormal_gap(plan.format) {}

  template <class D32>
  HWY_INLINE hn::Vec<D32> operator()(D32, hn::Vec<D32> bits, const uint32_t*) const {
    return CloseNearestEven(F32Lanes<D32>(), subnormal_gap, bits);
  }
};
struct StochasticCloser {
  StochasticSubnormalGap subnormal_gap;

  explicit StochasticCloser(const EncodePlan& plan) : subnormal_gap(plan) {}

  template <class D32>
  HWY_INLINE hn::Vec<D32> operator()(D32 d32, hn::Vec<D32> bits, const uint32_t* random) const {
    const F32Lanes<D32> l;
    const auto magnitude = l.And(bits, l.Set(l.kMagnitudeMask));
    const auto up = subnormal_gap.RoundsUp(d32, magnitude, hn::LoadU(d32, random));
    return CloseBy(l, subnormal_gap.subnormal_gap, bits, up);
  }
};
struct OtherCloser {
  SubnormalGapEdges subnormal_gap;
  RoundingMode mode;

  explicit OtherCloser(const EncodePlan& plan)
      : subnormal_gap(plan.format), mode(plan.rounding.mode) {}

  template <class D32>
  HWY_INLINE hn::Vec<D32> operator()(D32, hn::Vec<D32> bits, const uint32_t*) const {
    const F32Lanes<D32> l;
    return CloseBy(l, subnormal_gap, bits, RoundsUpInSubnormalGap(l, subnormal_gap, mode, bits));
  }
};

template <RuleMode kMode>
struct CloserOf {
  using Type = OtherCloser;
};
template <>
struct CloserOf<RuleMode::kNearestEven> {
  using Type = NearestCloser;
};
template <>
struct CloserOf<RuleMode::kStochastic> {
  using Type = StochasticCloser;
};

// Writes out[i] = in[i] with the subnormal gap closed. `random` holds one word per element with the
// random bits at the top and is read only in a stochastic mode. Requires a format for which
// SubnormalGapFitsLanes holds.
template <RuleMode kMode>
HWY_NOINLINE void CloseSubnormalGap(const EncodePlan& plan,
                                    const float* HWY_RESTRICT in,
                                    size_t n,
                                    const uint32_t* HWY_RESTRICT random,
                                    float* HWY_RESTRICT out) {
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(uint32_t);
  const typename CloserOf<kMode>::Type closer(plan);
  const hn::ScalableTag<uint32_t> d32;
  const auto close = [&](const float* from, const uint32_t* words, float* to) HWY_ATTR {
    const auto bits = hn::LoadU(d32, reinterpret_cast<const uint32_t*>(from));
    hn::StoreU(closer(d32, bits, words), d32, reinterpret_cast<uint32_t*>(to));
  };
  const size_t lanes = hn::Lanes(d32);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) close(in + i, random + i, out + i);
  if (i == n) return;
  float in_tail[kMaxLanes] = {};
  uint32_t random_tail[kMaxLanes] = {};
  float out_tail[kMaxLanes];
  std::copy(in + i, in + n, in_tail);
  if constexpr (kMode == RuleMode::kStochastic) std::copy(random + i, random + n, random_tail);
  close(in_tail, random_tail, out_tail);
  std::copy(out_tail, out_tail + (n - i), out + i);
}

// Replaces values of the format without the subnormal gap by the values of `format` that have the
// same codes, in place.
inline HWY_NOINLINE void OpenSubnormalGap(const FormatSpec& format, float* values, size_t n) {
  const hn::ScalableTag<int32_t> di;
  const SubnormalGapEdges subnormal_gap(format);
  const auto zero = hn::Zero(di);
  const auto high = hn::Set(di, static_cast<int32_t>(subnormal_gap.high));
  const auto raise = hn::Set(di, static_cast<int32_t>(subnormal_gap.raise));
  const auto mask = hn::Set(di, 0x7FFFFFFF);
  const auto open = [&](float* at) HWY_ATTR {
    int32_t* const words = reinterpret_cast<int32_t*>(at);
    const auto bits = hn::LoadU(di, words);
    const auto magnitude = hn::And(bits, mask);
    const auto subnormal = hn::And(hn::Gt(magnitude, zero), hn::Lt(magnitude, high));
    hn::StoreU(hn::Sub(bits, hn::IfThenElseZero(subnormal, raise)), di, words);
  };
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(int32_t);
  const size_t lanes = hn::Lanes(di);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) open(values + i);
  if (i == n) return;
  float tail[kMaxLanes] = {};
  std::copy(values + i, values + n, tail);
  open(tail);
  std::copy(tail, tail + (n - i), values + i);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
