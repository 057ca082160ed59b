// Closing and opening the subnormal gap of a format in vectors, by integer operations only:
// subnormal_gap_edges.h explains both. Re-included per target.
#if defined(NUMSIM_CAST_SUBNORMAL_GAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_SUBNORMAL_GAP_INL_H_
#undef NUMSIM_CAST_SUBNORMAL_GAP_INL_H_
#else
#define NUMSIM_CAST_SUBNORMAL_GAP_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "numsim/cast/internal/lanes-inl.h"
#include "numsim/cast/internal/philox-inl.h"
#include "numsim/cast/internal/subnormal_gap_edges.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns a magnitude of float32 bits as a word of the lanes. Requires a normal number that the
// lanes hold.
template <class L>
HWY_INLINE typename L::Word Edge(const L& l, uint32_t f32) {
  constexpr int kM = L::kMantissaBits;
  const uint64_t placed =
      kM < 23 ? f32 >> (kM < 23 ? 23 - kM : 0) : uint64_t{f32} << (kM < 23 ? 0 : kM - 23);
  return l.Set(placed + (static_cast<uint64_t>(L::kBias - 127) << kM));
}

// Returns the word that multiplies by 2^subnormal_shift when it is added to a number's bits.
template <class L>
HWY_INLINE typename L::Word Raise(const L& l, const SubnormalGapEdges& subnormal_gap) {
  return l.Set(uint64_t{subnormal_gap.raise >> 23} << L::kMantissaBits);
}

// Closes the gap for rounding to nearest even. The middle of the gap goes to the smallest normal,
// whose code is even. Like the other functions of this file, it also serves numbers truncated to
// fewer bits with a sticky last bit, if they hold the ends of the gap and, to nearest, its middle
// with one bit to spare.
template <class L>
HWY_INLINE typename L::Word CloseNearestEven(const L& l,
                                             const SubnormalGapEdges& subnormal_gap,
                                             typename L::Word bits) {
  const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
  const auto sign = l.Sub(bits, magnitude);
  const auto lower =
      l.MinI(l.Add(magnitude, Raise(l, subnormal_gap)), Edge(l, subnormal_gap.low_raised));
  const auto upper = l.MaxI(magnitude, Edge(l, subnormal_gap.high));
  return l.Or(l.Select(l.GtI(Edge(l, subnormal_gap.middle), magnitude), lower, upper), sign);
}

// Decides if stochastic rounding takes a magnitude in the subnormal gap to the upper end of the
// gap. Let nu = (|x| - low) / (high - low) = N / (2^f D), with integers N and D and f the number of
// fraction bits of low. Let R be the random bits at the top of a word of w bits. Variant A rounds
// up when N / (2^f D) >= 1 - R / 2^w, that is, when
//   N 2^(w-f) + R D >= D 2^w.
// Variant B adds half a unit of the last random bit to R. Variant C does so too, but excludes
// equality if the random bits are odd, which subtracts 1 from twice the left side. Divided by
// 2^(w-f), all terms fit into a lane. The division discards only a fraction, and the right side is
// an integer.
template <class L>
struct StochasticSubnormalGap {
  static constexpr int kW = L::kWordBits;
  SubnormalGapEdges subnormal_gap;
  int f;
  uint32_t denominator;
  int draw_bits;
  uint64_t half = 0;       // half a unit of the last random bit
  uint32_t half_low = 0;   // the same if it lies below the word, in halves of the word's last bit
  bool odd_keeps = false;  // variant C

  explicit StochasticSubnormalGap(const EncodePlan& plan)
      : subnormal_gap(plan.format),
        f(L::kMantissaBits + 1 - plan.format.mantissa_bits),
        denominator(subnormal_gap.units),
        draw_bits(plan.rounding.random_bits) {
    if (plan.rounding.variant == StochasticVariant::kA) return;
    half = draw_bits < kW ? uint64_t{1} << (kW - 1 - draw_bits) : 0;
    half_low = draw_bits < kW ? 0 : 1;
    odd_keeps = plan.rounding.variant == StochasticVariant::kC;
  }

  // Returns the lanes that round up. The result is arbitrary for numbers outside the gap.
  HWY_INLINE typename L::Mask RoundsUp(const L& l,
                                       typename L::Word magnitude,
                                       typename L::Word random) const {
    constexpr int kM = L::kMantissaBits;
    const typename L::Tag d;
    const hn::RebindToSigned<typename L::Tag> di;
    const auto one = l.Set(1);
    const auto hidden = l.Set(uint64_t{1} << kM);
    const auto mantissa_mask = l.Set((uint64_t{1} << kM) - 1);
    const auto low_edge = Edge(l, subnormal_gap.low);
    const auto last = l.Sub(Edge(l, subnormal_gap.high), one);
    const auto inside = l.MinI(l.MaxI(magnitude, low_edge), last);
    const auto significand = l.Or(l.And(inside, mantissa_mask), hidden);
    const auto binade = l.Sub(l.ShrBy(inside, kM), l.ShrBy(low_edge, kM));
    const auto low = l.Or(l.And(low_edge, mantissa_mask), hidden);
    const auto numerator = l.Sub(l.Shl(significand, binade), low);

    const auto draw = l.Or(l.And(random, l.TopBits(draw_bits)), l.Set(half));
    const auto upper = l.MulSmall(l.ShrBy(draw, kW - f), denominator);
    const auto rest_mask = l.Set((uint64_t{1} << (kW + 1 - f)) - 1);
    const auto rest = l.Or(l.And(l.ShlBy(draw, 1), rest_mask), l.Set(half_low));
    auto lower = l.MulSmall(rest, denominator);
    if (odd_keeps) lower = l.Sub(lower, l.And(l.ShrBy(random, kW - draw_bits), one));
    const auto carried = hn::BitCast(d, hn::ShiftRightSame(hn::BitCast(di, lower), kW + 1 - f));
    const auto sum = l.Add(l.Add(numerator, upper), carried);
    return l.GtI(sum, l.Set((uint64_t{denominator} << f) - 1));
  }
};

// Closes the gap for the other modes. Numbers in the gap go to its upper end in the lanes of
// `rounds_up`, else to its lower end. Subnormals of the lanes and zero are left unchanged, since
// they lie far below every value of the format.
template <class L>
HWY_INLINE typename L::Word CloseBy(const L& l,
                                    const SubnormalGapEdges& subnormal_gap,
                                    typename L::Word bits,
                                    typename L::Mask rounds_up) {
  const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
  const auto sign = l.Sub(bits, magnitude);
  const auto normal = l.GtI(magnitude, l.Set((uint64_t{1} << L::kMantissaBits) - 1));
  const auto raised = l.Add(magnitude, l.Select(normal, Raise(l, subnormal_gap), l.Set(0)));
  const auto high = Edge(l, subnormal_gap.high);
  const auto end = l.Select(rounds_up, high, Edge(l, subnormal_gap.low_raised));
  auto moved = l.Select(l.GtI(magnitude, Edge(l, subnormal_gap.low)), end, raised);
  moved = l.Select(l.GtI(high, magnitude), moved, magnitude);
  return l.Or(moved, sign);
}

// Returns the lanes in which a number in the gap rounds to the upper end, for the modes other than
// nearest even and stochastic.
template <class L>
HWY_INLINE typename L::Mask RoundsUpInSubnormalGap(const L& l,
                                                   const SubnormalGapEdges& subnormal_gap,
                                                   RoundingMode mode,
                                                   typename L::Word bits) {
  const auto zero = l.Set(0);
  const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
  switch (mode) {
    case RoundingMode::kNearestAway:
      return l.GtI(magnitude, l.Sub(Edge(l, subnormal_gap.middle), l.Set(1)));
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

// Function objects that close the gap of a vector of numbers, given the random words of its
// elements with R at the top, which only StochasticCloser reads.
template <class L>
struct NearestCloser {
  SubnormalGapEdges subnormal_gap;

  explicit NearestCloser(const EncodePlan& plan) : subnormal_gap(plan.format) {}

  HWY_INLINE typename L::Word operator()(const L& l,
                                         typename L::Word bits,
                                         typename L::Word) const {
    return CloseNearestEven(l, subnormal_gap, bits);
  }
};
template <class L>
struct StochasticCloser {
  StochasticSubnormalGap<L> subnormal_gap;

  explicit StochasticCloser(const EncodePlan& plan) : subnormal_gap(plan) {}

  HWY_INLINE typename L::Word operator()(const L& l,
                                         typename L::Word bits,
                                         typename L::Word random) const {
    const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
    const auto up = subnormal_gap.RoundsUp(l, magnitude, random);
    return CloseBy(l, subnormal_gap.subnormal_gap, bits, up);
  }
};
template <class L>
struct OtherCloser {
  SubnormalGapEdges subnormal_gap;
  RoundingMode mode;

  explicit OtherCloser(const EncodePlan& plan)
      : subnormal_gap(plan.format), mode(plan.rounding.mode) {}

  HWY_INLINE typename L::Word operator()(const L& l,
                                         typename L::Word bits,
                                         typename L::Word) const {
    return CloseBy(l, subnormal_gap, bits, RoundsUpInSubnormalGap(l, subnormal_gap, mode, bits));
  }
};

template <RuleMode kMode, class L>
using CloserOf = std::conditional_t<
    kMode == RuleMode::kNearestEven,
    NearestCloser<L>,
    std::conditional_t<kMode == RuleMode::kStochastic, StochasticCloser<L>, OtherCloser<L>>>;

// Stands for a closer where the format has no gap.
struct NoCloser {
  explicit NoCloser(const EncodePlan&) {}

  template <class L>
  HWY_INLINE typename L::Word operator()(const L&, typename L::Word bits, typename L::Word) const {
    return bits;
  }
};

// Writes out[i] = in[i], words of the lanes L, with the subnormal gap closed. `out` may be `in`.
// `random` holds one 32-bit word per element with the random bits at the top and is read only in a
// stochastic mode. Requires a format for which SubnormalGapFitsLanes holds.
template <RuleMode kMode, class L, typename T = hn::TFromD<typename L::Tag>>
HWY_NOINLINE void CloseSubnormalGap(
    const EncodePlan& plan, const T* in, size_t n, const uint32_t* HWY_RESTRICT random, T* out) {
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(T);
  const CloserOf<kMode, L> closer(plan);
  const L l;
  const typename L::Tag d;
  const auto close = [&](const T* from, const uint32_t* words, T* to) HWY_ATTR {
    auto random_word = hn::Zero(d);
    if constexpr (kMode == RuleMode::kStochastic) random_word = LoadRandom(d, words);
    hn::StoreU(closer(l, hn::LoadU(d, from), random_word), d, to);
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) close(in + i, random + i, out + i);
  if (i == n) return;
  T in_tail[kMaxLanes] = {};
  uint32_t random_tail[kMaxLanes] = {};
  T out_tail[kMaxLanes];
  std::copy(in + i, in + n, in_tail);
  if constexpr (kMode == RuleMode::kStochastic) std::copy(random + i, random + n, random_tail);
  close(in_tail, random_tail, out_tail);
  std::copy(out_tail, out_tail + (n - i), out + i);
}

// Returns the bits of the values that have, in the format of `subnormal_gap`, the codes of values of
// the format without the gap.
template <class D32>
HWY_INLINE hn::Vec<D32> OpenGap(D32, const SubnormalGapEdges& subnormal_gap, hn::Vec<D32> bits) {
  const F32Lanes<D32> l;
  const auto zero = l.Set(0);
  const auto magnitude = l.And(bits, l.Set(l.kMagnitudeMask));
  const auto subnormal =
      l.AndMask(l.GtI(magnitude, zero), l.GtI(l.Set(subnormal_gap.high), magnitude));
  return l.Sub(bits, l.Select(subnormal, l.Set(subnormal_gap.raise), zero));
}

// Opens the gap of an array of values, in place.
inline HWY_NOINLINE void OpenSubnormalGap(const FormatSpec& format, float* values, size_t n) {
  const hn::ScalableTag<uint32_t> d32;
  const SubnormalGapEdges subnormal_gap(format);
  const auto open = [&](float* at) HWY_ATTR {
    uint32_t* const words = reinterpret_cast<uint32_t*>(at);
    hn::StoreU(OpenGap(d32, subnormal_gap, hn::LoadU(d32, words)), d32, words);
  };
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(uint32_t);
  const size_t lanes = hn::Lanes(d32);
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
