// Packs the panels of aligned sums. Re-included per target.
#if defined(NUMSIM_GEMM_GEMM_ALIGNED_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_GEMM_GEMM_ALIGNED_PACK_INL_H_
#undef NUMSIM_GEMM_GEMM_ALIGNED_PACK_INL_H_
#else
#define NUMSIM_GEMM_GEMM_ALIGNED_PACK_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "numsim/gemm/internal/gemm_aligned_layout.h"
#include "numsim/gemm/internal/gemm_simd.h"
#include "numsim/gemm/internal/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns floor(log2 |x|), at least `least`, or `none` for zero.
template <class D, class V>
HWY_INLINE auto ExponentOf(D d, V x, int least, int none) {
  const hn::RebindToSigned<D> di;
  const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(di, x)), hn::Set(di, 0xFF));
  const auto exponent = hn::Max(hn::Sub(field, hn::Set(di, 127)), hn::Set(di, least));
  return hn::IfThenElse(hn::RebindMask(di, hn::Eq(x, hn::Zero(d))), hn::Set(di, none), exponent);
}

// Returns the place of the lowest set bit of x, counted from bit 2^unit, with `sign` added if x is
// negative, or `none` for zero.
template <class D, class V>
HWY_INLINE auto LowestBitOf(D d, V x, int unit, int sign, int none) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto field = hn::And(hn::ShiftRight<23>(bits), hn::Set(di, 0xFF));
  const auto fraction = hn::And(bits, hn::Set(di, (1 << 23) - 1));
  const auto hidden = hn::IfThenElseZero(hn::Gt(field, hn::Zero(di)), hn::Set(di, 1 << 23));
  const auto significand = hn::Or(fraction, hidden);
  const auto lowest = hn::And(significand, hn::Sub(hn::Zero(di), significand));
  const auto place = hn::Sub(hn::ShiftRight<23>(hn::BitCast(di, hn::ConvertTo(d, lowest))),
                             hn::Set(di, 127 + 150 + unit));
  const auto signs = hn::And(hn::BroadcastSignBit(bits), hn::Set(di, sign));
  const auto of_nonzero = hn::Add(hn::Add(place, hn::Max(field, hn::Set(di, 1))), signs);
  return hn::IfThenElse(hn::RebindMask(di, hn::Eq(x, hn::Zero(d))), hn::Set(di, none), of_nonzero);
}

// Returns 2^(8 e + offset - 127) as bf16, with e the exponent of x above the smallest, or 0 for zero.
template <class D, class V>
HWY_INLINE auto PowerOf(D d, V x, const AlignedGrid& grid, int offset) {
  const hn::RebindToSigned<D> di;
  const auto exponent = ExponentOf(d, x, grid.least_exponent, 0);
  const auto above = hn::Sub(exponent, hn::Set(di, grid.low_exponent));
  const auto power = hn::ShiftLeft<7>(hn::Add(hn::ShiftLeft<3>(above), hn::Set(di, offset)));
  return hn::IfThenZeroElse(hn::RebindMask(di, hn::Eq(x, hn::Zero(d))), power);
}

// Writes words of per_word fields each for a chunk: of(x) for its values x, of(0) beyond its end.
template <class D, class Of>
HWY_INLINE void FillWords(D d,
                          const AlignedWords& layout,
                          const float* HWY_RESTRICT values,
                          size_t width,
                          size_t depth,
                          const Of& of,
                          uint32_t* HWY_RESTRICT words) {
  const hn::RebindToSigned<D> di;
  const bool bytes = layout.per_word == 4;
  const auto mask = hn::Set(di, bytes ? 0xFF : 0xFFFF);
  for (size_t w = 0; w < layout.words; ++w, words += width) {
    for (size_t v = 0; v < width; v += hn::Lanes(d)) {
      auto word = hn::Zero(di);
      for (size_t i = layout.per_word; i-- > 0;) {
        const size_t k = w * layout.per_word + i;
        auto x = k < depth ? hn::LoadU(d, values + k * width + v) : hn::Zero(d);
        x = hn::IfThenElseZero(hn::IsFinite(x), x);
        word = bytes ? hn::ShiftLeft<8>(word) : hn::ShiftLeft<16>(word);
        word = hn::Or(word, hn::And(of(x), mask));
      }
      hn::StoreU(word, di, reinterpret_cast<int32_t*>(words) + v);
    }
  }
}

// Puts the words of each row of A one after another, as tile registers take them.
HWY_INLINE void TransposePowers(uint32_t* HWY_RESTRICT words) {
  constexpr size_t kWords = kAmxPowers / 2;
  uint32_t copy[kWords * kRows];
  std::copy_n(words, kWords * kRows, copy);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t w = 0; w < kWords; ++w) words[r * kWords + w] = copy[w * kRows + r];
  }
}

// Writes `width` values of each of `depth` positions k, and their words.
template <typename T, class D>
HWY_INLINE void FillPanel(D d,
                          const AlignedSums& sums,
                          bool is_a,
                          const AlignedGrid& grid,
                          const float* HWY_RESTRICT values,
                          size_t width,
                          size_t depth,
                          uint8_t* panel) {
  const bool shorts = sums.lanes == AlignedLanes::kDouble;
  const int sign =
      shorts ? std::numeric_limits<int16_t>::min() : std::numeric_limits<int8_t>::min();
  const int none = shorts ? kNoLowestBit<int16_t> : kNoLowestBit<int8_t>;
  const hn::Rebind<T, D> dt;
  const AlignedLayout layout(sums, width, depth);
  const size_t chunk = static_cast<size_t>(sums.chunk);
  T* HWY_RESTRICT to = reinterpret_cast<T*>(panel);
  for (size_t i = 0; i < depth * width; i += hn::Lanes(d)) {
    auto x = hn::LoadU(d, values + i);
    x = hn::IfThenElseZero(hn::IsFinite(x), x);
    if constexpr (sizeof(T) == 8) {
      hn::StoreU(hn::PromoteTo(dt, x), dt, to + i);
    } else {
      hn::StoreU(x, d, to + i);
    }
  }
  const auto exponent = [&](auto x) HWY_ATTR {
    return ExponentOf(d, x, grid.least_exponent, NoExponent(sums.lanes));
  };
  const auto lowest_bit = [&](auto x) HWY_ATTR { return LowestBitOf(d, x, grid.unit, sign, none); };
  const auto power = [&](auto x) HWY_ATTR {
    return PowerOf(d, x, grid, is_a ? kPowerOffsetA : kPowerOffsetB);
  };
  for (size_t k = 0; k < depth; k += chunk) {
    const auto fill = [&](const AlignedWords& array, const auto& of) HWY_ATTR {
      uint32_t* const words =
          reinterpret_cast<uint32_t*>(panel + array.at) + k / chunk * array.words * width;
      FillWords(d, array, values + k * width, width, HWY_MIN(chunk, depth - k), of, words);
      return words;
    };
    if (sums.lanes == AlignedLanes::kFloatTiles) {
      uint32_t* const words = fill(layout.exponents, power);
      if (is_a) TransposePowers(words);
    } else {
      fill(layout.exponents, exponent);
    }
    if (sums.lanes != AlignedLanes::kInteger) fill(layout.lowest_bits, lowest_bit);
  }
}

template <typename T>
HWY_INLINE void FillPanelOf(const AlignedSums& sums,
                            bool is_a,
                            const AlignedGrid& grid,
                            const float* values,
                            size_t depth,
                            uint8_t* panel) {
  if (is_a) {
    constexpr size_t kMost = HWY_MAX_BYTES / sizeof(T);  // of one vector: on Arm 2 doubles
    const hn::CappedTag<float, std::min<size_t>(kRows % 4 == 0 ? 4 : 2, kMost)> d;
    return FillPanel<T>(d, sums, is_a, grid, values, kRows, depth, panel);
  }
  const hn::Rebind<float, hn::ScalableTag<T>> d;
  FillPanel<T>(d, sums, is_a, grid, values, kVectors * hn::Lanes(d), depth, panel);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
