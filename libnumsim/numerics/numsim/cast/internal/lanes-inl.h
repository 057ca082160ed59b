// The lane policy of the rounding and decoding rules (rounding/shared) over Highway vectors.
// Re-included per target.
#if defined(NUMSIM_CAST_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_LANES_INL_H_
#undef NUMSIM_CAST_LANES_INL_H_
#else
#define NUMSIM_CAST_LANES_INL_H_
#endif

#include "hwy/highway.h"
#include "numsim/rounding/encode_plan.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of unsigned words that hold floats with kMantissa mantissa bits.
template <class D, int kMantissa, int kExponentBias>
struct VectorLanes {
  using Tag = D;
  using Word = hn::Vec<D>;
  using Mask = hn::Mask<D>;
  using DI = hn::RebindToSigned<D>;
  static constexpr int kWordBits = 8 * sizeof(hn::TFromD<D>);
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = kExponentBias;
  static constexpr uint64_t kMagnitudeMask = (uint64_t{1} << (kWordBits - 1)) - 1;
  static constexpr uint64_t kInfinityBits = kMagnitudeMask >> kMantissa << kMantissa;

  HWY_INLINE Word Set(uint64_t x) const { return hn::Set(D(), static_cast<hn::TFromD<D>>(x)); }
  HWY_INLINE Word TopBits(int n) const { return Set(~uint64_t{0} << (kWordBits - n)); }
  HWY_INLINE Word Add(Word a, Word b) const { return hn::Add(a, b); }
  HWY_INLINE Word Sub(Word a, Word b) const { return hn::Sub(a, b); }
  HWY_INLINE Word And(Word a, Word b) const { return hn::And(a, b); }
  HWY_INLINE Word Or(Word a, Word b) const { return hn::Or(a, b); }
  HWY_INLINE Word Not(Word a) const { return hn::Not(a); }
  HWY_INLINE Word Shl(Word a, Word n) const { return hn::Shl(a, n); }
  HWY_INLINE Word Shr(Word a, Word n) const { return hn::Shr(a, n); }
  HWY_INLINE Word ShlBy(Word a, int n) const { return hn::ShiftLeftSame(a, n); }
  HWY_INLINE Word ShrBy(Word a, int n) const { return hn::ShiftRightSame(a, n); }
  HWY_INLINE Word MinI(Word a, Word b) const { return Bits(hn::Min(Int(a), Int(b))); }
  HWY_INLINE Word MaxI(Word a, Word b) const { return Bits(hn::Max(Int(a), Int(b))); }
  HWY_INLINE Mask GtI(Word a, Word b) const { return hn::RebindMask(D(), hn::Gt(Int(a), Int(b))); }
  HWY_INLINE Mask GtU(Word a, Word b) const { return hn::Gt(a, b); }
  HWY_INLINE Mask Eq(Word a, Word b) const { return hn::Eq(a, b); }
  HWY_INLINE Word Select(Mask m, Word yes, Word no) const { return hn::IfThenElse(m, yes, no); }
  HWY_INLINE Mask AndMask(Mask a, Mask b) const { return hn::And(a, b); }
  HWY_INLINE Mask OrMask(Mask a, Mask b) const { return hn::Or(a, b); }
  // Returns a * b. Requires b < 2^32 and a product that fits the lanes.
  HWY_INLINE Word MulSmall(Word a, uint32_t b) const {
#if HWY_TARGET > HWY_AVX3 && HWY_TARGET != HWY_SCALAR
    if constexpr (kWordBits == 64) {
      const hn::Repartition<uint32_t, D> d32;
      const auto factor = hn::Set(d32, b);
      const auto low = hn::MulEven(hn::BitCast(d32, a), factor);
      const auto high = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(a)), factor);
      return hn::Add(low, hn::ShiftLeft<32>(high));
    }
#endif
    return hn::Mul(a, Set(b));
  }
  // Exact in every rounding mode: the argument has at most kMantissaBits bits.
  HWY_INLINE Word FloatBitsOfInt(Word a) const {
    const hn::RebindToFloat<D> df;
    return hn::BitCast(D(), hn::ConvertTo(df, Int(a)));
  }

 private:
  HWY_INLINE hn::Vec<DI> Int(Word a) const { return hn::BitCast(DI(), a); }
  HWY_INLINE Word Bits(hn::Vec<DI> a) const { return hn::BitCast(D(), a); }
};

template <class D32>
using F32Lanes = VectorLanes<D32, 23, 127>;

// float32 truncated to 16 bits with a sticky last bit: see EncodeSticky (shortcuts-inl.h).
template <class D16>
using StickyBf16Lanes = VectorLanes<D16, 7, 127>;

// The upper 32 bits of a float64 with a sticky last bit: see encode_f64_simd.cc.
template <class D32>
using StickyF64Lanes = VectorLanes<D32, 20, 1023>;

template <class D64>
using F64Lanes = VectorLanes<D64, 52, 1023>;

#define NUMSIM_RULE HWY_INLINE
#include "numsim/rounding/shared/decode_rule.inc"
#include "numsim/rounding/shared/encode_rule.inc"
#undef NUMSIM_RULE

// Returns the codes of words whose subnormals lie far below every value of the format, in any mode.
template <RuleMode kMode, class L>
HWY_INLINE typename L::Word EncodeNarrower(const L& l,
                                           const EncodePlan& plan,
                                           typename L::Word bits,
                                           typename L::Word random) {
  if constexpr (kMode != RuleMode::kOther) {
    return EncodeWord<kMode, ExponentRange::kNarrower>(l, plan, bits, random);
  } else {
    // PositionNarrower gives zero a nonzero fraction below a quarter, which directed modes may not
    // see.
    const auto zero = l.Set(0);
    const auto magnitude = l.And(bits, l.Set(L::kMagnitudeMask));
    auto x = PositionNarrower(l, plan, magnitude, false);
    x.v = l.Select(l.Eq(magnitude, zero), zero, x.v);
    const auto ordinal = RoundAligned<RuleMode::kOther>(l, plan, bits, x, zero);
    return Finish(l, plan, bits, magnitude, ordinal);
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
