// float64 numbers cut to fewer bits, the last of which is set if anything below was not zero: that
// is rounding to odd. Re-included per target.
#if defined(NUMSIM_CAST_CUT_F64_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_CAST_CUT_F64_INL_H_
#undef NUMSIM_CAST_CUT_F64_INL_H_
#else
#define NUMSIM_CAST_CUT_F64_INL_H_
#endif

#include <bit>

#include "hwy/highway.h"
#include "numsim/cast/internal/shortcuts-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the upper 32 bits with a sticky last bit, which leaves 21 significant bits.
template <class D32>
HWY_INLINE hn::Vec<D32> StickyWords(D32 d32, const double* in) {
#if HWY_TARGET == HWY_SCALAR
  const uint64_t bits = std::bit_cast<uint64_t>(*in);
  const uint32_t sticky = static_cast<uint32_t>(bits) != 0 ? 1 : 0;
  return hn::Set(d32, static_cast<uint32_t>(bits >> 32) | sticky);
#else
  const hn::Repartition<uint64_t, D32> d64;
  const uint64_t* const words = reinterpret_cast<const uint64_t*>(in);
  const auto a = hn::BitCast(d32, hn::LoadU(d64, words));
  const auto b = hn::BitCast(d32, hn::LoadU(d64, words + hn::Lanes(d64)));
  const auto low = hn::ConcatEven(d32, b, a);
  return hn::Or(hn::ConcatOdd(d32, b, a), hn::Min(low, hn::Set(d32, 1)));
#endif
}

// A source of an encoding loop (shortcuts-inl.h): float64 numbers as float32 that are rounded to
// odd to 21 bits. Numbers below the normal range of float32 become subnormals that are not zero,
// and those above it its largest number.
struct CutToF32 {
  static constexpr bool kDefaultEnvironment = false;
  using Element = double;
  size_t ahead = kPrefetchAhead;

  template <class DF>
  HWY_INLINE hn::Vec<DF> Load(DF df, const double* in, size_t) const {
    constexpr int32_t kRebias = (1023 - 127) << 20;
    constexpr int32_t kInfinity = 0xFF << 20;  // float32's, before the shift by 3
    const hn::RebindToUnsigned<DF> du;
    const hn::RebindToSigned<DF> di;
    const auto word = StickyWords(du, in);
    const auto magnitude = hn::BitCast(di, hn::And(word, hn::Set(du, 0x7FFFFFFFu)));
    const auto rebased = hn::Sub(magnitude, hn::Set(di, kRebias));
    const auto nonzero = hn::Min(magnitude, hn::Set(di, 1));
    const auto bounded = hn::Min(hn::Max(rebased, nonzero), hn::Set(di, kInfinity - 1));
    const auto is_special = hn::Gt(magnitude, hn::Set(di, (0x7FF << 20) - 1));
    const auto special = hn::Sub(magnitude, hn::Set(di, (0x7FF << 20) - kInfinity));
    const auto bits = hn::ShiftLeft<3>(hn::IfThenElse(is_special, special, bounded));
    const auto sign = hn::AndNot(hn::Set(du, 0x7FFFFFFFu), word);
    return hn::BitCast(df, hn::Or(hn::BitCast(du, bits), sign));
  }
};

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
