// Most conversions read the upper 32 bits of a float64, whose last bit is set if anything below is
// not zero. That is rounding to odd with 21 significant bits and float64's exponents. If the final
// rounding looks at fewer bits, it then equals rounding once [Boldo]. The other conversions take
// the rule in 64-bit lanes.
#include "numsim/cast/internal/encode_f64_simd.h"

#include <algorithm>

#include "numsim/cast/internal/subnormal_gap_edges.h"
#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/cast/internal/encode_f64_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/cast/internal/cut_f64-inl.h"
#include "numsim/cast/internal/lanes-inl.h"
#include "numsim/cast/internal/philox-inl.h"
#include "numsim/cast/internal/shortcuts-inl.h"
#include "numsim/cast/internal/subnormal_gap-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {

constexpr size_t kF64MaxLanes = HWY_MAX_BYTES / sizeof(uint32_t);

// Writes the words of n elements, and up to a vector of others beyond them.
HWY_NOINLINE void StickyWordsOfBlock(const double* HWY_RESTRICT in,
                                     size_t n,
                                     uint32_t* HWY_RESTRICT words) {
  const hn::ScalableTag<uint32_t> d32;
  const size_t lanes = hn::Lanes(d32);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hwy::Prefetch(in + i + kPrefetchAhead);
    hwy::Prefetch(in + i + kPrefetchAhead + lanes / 2);
    hn::StoreU(StickyWords(d32, in + i), d32, words + i);
  }
  if (i == n) return;
  double tail[kF64MaxLanes] = {};
  std::copy(in + i, in + n, tail);
  hn::StoreU(StickyWords(d32, tail), d32, words + i);
}

// Encodes n words. Up to a vector of words beyond them is read.
template <RuleMode kMode, typename Code>
HWY_NOINLINE void EncodeStickyWords(const EncodePlan& plan_ref,
                                    const uint32_t* HWY_RESTRICT words,
                                    size_t n,
                                    const uint32_t* HWY_RESTRICT random,
                                    Code* HWY_RESTRICT out) {
  const EncodePlan plan = plan_ref;  // a local copy: the stores below cannot alias it
  const hn::ScalableTag<uint32_t> d32;
  const StickyF64Lanes<decltype(d32)> l;
  const auto encode = [&](size_t i, Code* to) HWY_ATTR {
    auto random_word = hn::Zero(d32);
    if constexpr (kMode == RuleMode::kStochastic) random_word = hn::LoadU(d32, random + i);
    const auto bits = hn::LoadU(d32, words + i);
    StoreCodes(d32, EncodeNarrower<kMode>(l, plan, bits, random_word), to);
  };
  const size_t lanes = hn::Lanes(d32);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) encode(i, out + i);
  if (i == n) return;
  Code tail[kF64MaxLanes];
  encode(i, tail);
  std::copy(tail, tail + (n - i), out + i);
}

// Encodes by the upper words.
template <RuleMode kMode, typename Code>
void EncodeF64ByWords(
    const EncodePlan& plan, const double* x, size_t n, Code* codes, const ArrayRandom& random) {
  using Lanes = StickyF64Lanes<hn::ScalableTag<uint32_t>>;
  const EncodePlan without = WithoutSubnormalGap(plan);
  HWY_ALIGN uint32_t words[kPaddedBlock], draws[kDrawnWords];
  const uint32_t* drawn = words;  // nothing is read through it unless the mode is stochastic
  for (size_t i = 0; i < n; i += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - i);
    if constexpr (kMode == RuleMode::kStochastic) {
      drawn = DrawBlock(random, plan.rounding.random_bits, i, count, draws);
    }
    StickyWordsOfBlock(x + i, count, words);
    if (plan.format.subnormal_shift != 0) {
      CloseSubnormalGap<kMode, Lanes>(plan, words, count, drawn, words);
    }
    EncodeStickyWords<kMode>(without, words, count, drawn, codes + i);
  }
}

// Encodes a prefix in 16-bit lanes if the plan permits, and returns its length.
size_t EncodeF64Shortcut(const EncodePlan& plan, const double* x, size_t n, uint8_t* codes) {
#if HWY_TARGET <= HWY_AVX3
  // No format's largest value exceeds float32's, so what CutToF32 bounds overflows in any case.
  if (ServesSticky(plan)) return EncodeStickyAny(plan, CutToF32(), x, n, codes);
#else
  (void)plan, (void)x, (void)n, (void)codes;
#endif
  return 0;
}

template <typename Code>
void EncodeF64InMode(
    const EncodePlan& plan, const double* x, size_t n, Code* codes, const ArrayRandom& random) {
  if constexpr (sizeof(Code) == 1) {
    const size_t done = EncodeF64Shortcut(plan, x, n, codes);
    x += done, n -= done, codes += done;  // nothing was done in a stochastic mode
  }
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return EncodeF64ByWords<RuleMode::kNearestEven>(plan, x, n, codes, random);
    case RuleMode::kStochastic:
      return EncodeF64ByWords<RuleMode::kStochastic>(plan, x, n, codes, random);
    case RuleMode::kOther:
      return EncodeF64ByWords<RuleMode::kOther>(plan, x, n, codes, random);
  }
}
void EncodeF64U8(
    const EncodePlan& plan, const double* x, size_t n, uint8_t* codes, const ArrayRandom& random) {
  EncodeF64InMode(plan, x, n, codes, random);
}
void EncodeF64U16(
    const EncodePlan& plan, const double* x, size_t n, uint16_t* codes, const ArrayRandom& random) {
  EncodeF64InMode(plan, x, n, codes, random);
}
void EncodeF64U32(
    const EncodePlan& plan, const double* x, size_t n, uint32_t* codes, const ArrayRandom& random) {
  EncodeF64InMode(plan, x, n, codes, random);
}

// Closes the subnormal gap of float64 numbers for stochastic rounding, in place.
void CloseSubnormalGapF64(const EncodePlan& plan, double* x, size_t n, const ArrayRandom& random) {
  HWY_ALIGN uint32_t draws[kDrawnWords];
  const uint32_t* const drawn = DrawBlock(random, plan.rounding.random_bits, 0, n, draws);
  uint64_t* const words = reinterpret_cast<uint64_t*>(x);
  CloseSubnormalGap<RuleMode::kStochastic, F64Lanes<hn::ScalableTag<uint64_t>>>(
      plan, words, n, drawn, words);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(EncodeF64U8);
HWY_EXPORT(EncodeF64U16);
HWY_EXPORT(EncodeF64U32);
HWY_EXPORT(CloseSubnormalGapF64);

namespace {

// True if 21 significant bits rounded to odd suffice. The final rounding looks at the bits of a
// code, one more for a tie, and the random bits; the last of the 21 bits may be none of them. In a
// subnormal gap |x| has up to m + subnormal_shift bits before the point and ties and thresholds of
// random bits behind it. Variant A does not look at a tie.
bool UpperWordsSuffice(const EncodePlan& plan) {
  const FormatSpec& format = plan.format;
  const bool stochastic = plan.rounding.mode == RoundingMode::kStochastic;
  const bool ties = !stochastic || plan.rounding.variant != StochasticVariant::kA;
  const int before = format.mantissa_bits + std::max<int>(1, format.subnormal_shift);
  return before + (stochastic ? plan.rounding.random_bits : 0) + (ties ? 1 : 0) < 21;
}

// Encodes in 64-bit lanes.
template <typename Code>
void EncodeF64Whole(
    const EncodePlan& plan, const double* x, size_t n, Code* codes, const ArrayRandom& random) {
  alignas(64) double block[kPaddedBlock];
  alignas(64) uint32_t wide[kPaddedBlock];
  const EncodePlan without = WithoutSubnormalGap(plan);
  for (size_t begin = 0; begin < n; begin += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - begin);
    const ArrayRandom advanced = Advance(random, begin);
    std::copy_n(x + begin, count, block);
    std::fill_n(block + count, kPaddedBlock - count, 0.0);
    if (plan.format.subnormal_shift != 0) {
      HWY_DYNAMIC_DISPATCH(CloseSubnormalGapF64)(plan, block, count, advanced);
    }
    EncodeOdd(without, block, count, wide, advanced, nullptr);
    for (size_t i = 0; i < count; ++i) codes[begin + i] = static_cast<Code>(wide[i]);
  }
}

}  // namespace

bool EncodesF64InVectors(const EncodePlan& plan) noexcept {
  if (plan.format.IsTable()) return false;
  return plan.format.subnormal_shift == 0 || SubnormalGapFitsLanes(plan.format);
}

void EncodeF64Simd(
    const EncodePlan& plan, const double* x, size_t n, uint8_t* codes, const ArrayRandom& random) {
  if (!UpperWordsSuffice(plan)) return EncodeF64Whole(plan, x, n, codes, random);
  HWY_DYNAMIC_DISPATCH(EncodeF64U8)(plan, x, n, codes, random);
}
void EncodeF64Simd(
    const EncodePlan& plan, const double* x, size_t n, uint16_t* codes, const ArrayRandom& random) {
  if (!UpperWordsSuffice(plan)) return EncodeF64Whole(plan, x, n, codes, random);
  HWY_DYNAMIC_DISPATCH(EncodeF64U16)(plan, x, n, codes, random);
}
void EncodeF64Simd(
    const EncodePlan& plan, const double* x, size_t n, uint32_t* codes, const ArrayRandom& random) {
  if (!UpperWordsSuffice(plan)) return EncodeF64Whole(plan, x, n, codes, random);
  HWY_DYNAMIC_DISPATCH(EncodeF64U32)(plan, x, n, codes, random);
}

}  // namespace numsim
#endif  // HWY_ONCE
