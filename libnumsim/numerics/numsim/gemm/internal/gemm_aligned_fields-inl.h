// The loops over the fields of a chunk: its largest exponents, and its inexact products. Re-included
// per target.
#if defined(NUMSIM_GEMM_GEMM_ALIGNED_FIELDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_GEMM_GEMM_ALIGNED_FIELDS_INL_H_
#undef NUMSIM_GEMM_GEMM_ALIGNED_FIELDS_INL_H_
#else
#define NUMSIM_GEMM_GEMM_ALIGNED_FIELDS_INL_H_
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

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;

#if HWY_TARGET != HWY_SCALAR
// Calls each(r, v, a, b) for the words of a chunk: the fields of row kFirst + r of A, the same in all
// words, and those of vector v of columns of B. Takes half of the rows, whose results fit the
// registers.
template <typename Field, size_t kWords, size_t kFirst, class Each>
HWY_INLINE void ForEachWord(const uint32_t* HWY_RESTRICT a,
                            const uint32_t* HWY_RESTRICT b,
                            size_t words,
                            size_t cols,
                            const Each& each) {
  const hn::RebindToUnsigned<DI> du;
  const hn::Repartition<Field, DI> df;
  for (size_t w = 0; w < words; ++w, a += kRows, b += cols) {
    hn::Vec<decltype(df)> of_b[kWords];
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      of_b[v] = hn::BitCast(df, hn::LoadU(du, b + v * hn::Lanes(du)));
    }
    NUMSIM_UNROLL for (size_t r = 0; r < kRows / 2; ++r) {
      const auto of_a = hn::BitCast(df, hn::Set(du, a[kFirst + r]));
      NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) each(r, v, of_a, of_b[v]);
    }
  }
}
#endif

// --- The largest exponents of a chunk.

#if HWY_TARGET != HWY_SCALAR
// Does what LargestExponents does for half of the rows, from row kFirst on.
template <typename Exponent, size_t kWords, size_t kFirst>
HWY_INLINE void LargestOfRows(const uint32_t* HWY_RESTRICT a,
                              const uint32_t* HWY_RESTRICT b,
                              size_t words,
                              size_t cols,
                              int32_t* HWY_RESTRICT largest) {
  constexpr size_t kHalf = kRows / 2;
  const hn::RebindToUnsigned<DI> du;
  const hn::Repartition<Exponent, DI> de;
  hn::Vec<decltype(de)> most[kHalf][kWords];
  NUMSIM_UNROLL for (size_t r = 0; r < kHalf; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      most[r][v] = hn::Set(de, std::numeric_limits<Exponent>::min());
    }
  }
  const auto raise = [&](size_t r, size_t v, auto of_a, auto of_b) HWY_ATTR {
    most[r][v] = hn::Max(most[r][v], hn::SaturatedAdd(of_a, of_b));
  };
  ForEachWord<Exponent, kWords, kFirst>(a, b, words, cols, raise);
  NUMSIM_UNROLL for (size_t r = 0; r < kHalf; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      auto x = most[r][v];
      x = hn::Max(x, hn::BitCast(de, hn::ShiftLeft<16>(hn::BitCast(du, x))));
      if constexpr (sizeof(Exponent) == 1) {
        x = hn::Max(x, hn::BitCast(de, hn::ShiftLeft<8>(hn::BitCast(du, x))));
      }
      const DI di;
      hn::StoreU(hn::BitCast(di, x), di, largest + (kFirst + r) * cols + v * hn::Lanes(di));
    }
  }
}
#endif

// Writes the largest exponent of a product of row r and column c to largest[r * cols + c], shifted
// left by 32 - 8 or 32 - 16 bits. Lower bits have no meaning.
template <typename Exponent, size_t kWords>
HWY_INLINE void LargestExponents(const uint32_t* HWY_RESTRICT a,
                                 const uint32_t* HWY_RESTRICT b,
                                 size_t words,
                                 size_t cols,
                                 int32_t* HWY_RESTRICT largest) {
#if HWY_TARGET == HWY_SCALAR
  constexpr size_t kPerWord = 4 / sizeof(Exponent);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      int most = std::numeric_limits<Exponent>::min();
      for (size_t w = 0; w < words; ++w) {
        for (size_t i = 0; i < kPerWord; ++i) {
          const auto of = [&](uint32_t word) HWY_ATTR {
            return int{static_cast<Exponent>(word >> (8 * sizeof(Exponent) * i))};
          };
          most = HWY_MAX(most, of(a[w * kRows + r]) + of(b[w * cols + c]));
        }
      }
      largest[r * cols + c] =
          static_cast<int32_t>(static_cast<uint32_t>(most) << (32 - 8 * sizeof(Exponent)));
    }
  }
#else
  LargestOfRows<Exponent, kWords, 0>(a, b, words, cols, largest);
  LargestOfRows<Exponent, kWords, kRows / 2>(a, b, words, cols, largest);
#endif
}

// Does what LargestExponents does, from the sums of powers of AddAmxPowers. A chunk of zeros gets the
// exponent below the smallest of a product: that truncates nothing, because every accumulator is a
// multiple of 2^(E - F) for the E of a product.
HWY_INLINE void LargestFromPowers(const AlignedSums& sums,
                                  const int32_t* HWY_RESTRICT powers,
                                  size_t n,
                                  int32_t* HWY_RESTRICT largest) {
  const DI di;
  const auto least = hn::Set(di, (sums.low_exponent - 1) * (1 << 24));
  for (size_t i = 0; i < n; i += hn::Lanes(di)) {
    // The exponent of a sum, from bit 23 on, is 8 (E - low_exponent + 1) and up to 5 more.
    const auto exponent = hn::Add(hn::ShiftRight<2>(hn::LoadU(di, powers + i)), least);
    hn::StoreU(exponent, di, largest + i);
  }
}

// --- The negative products of a chunk that are no multiples of 2^(E - F).

// Returns the threshold below which the sum of two fields of lowest bits is that of such a product,
// repeated in all fields of a word. `exponents` are E.
template <typename Field, class DI>
HWY_INLINE hn::Vec<DI> Threshold(DI di, const AlignedSums& sums, hn::Vec<DI> exponents) {
  auto place = hn::Sub(exponents, hn::Set(di, sums.fraction_bits + sums.unit));
  place = hn::Min(hn::Max(place, hn::Zero(di)), hn::Set(di, kNoLowestBit<Field>));
  if constexpr (sizeof(Field) == 1) {
    // The sign bit is set in each byte.
    place = hn::Or(place, hn::ShiftLeft<8>(place));
    place = hn::Or(place, hn::ShiftLeft<16>(place));
    return hn::Or(place, hn::Set(di, static_cast<int32_t>(0x80808080)));
  } else {
    place = hn::Or(place, hn::ShiftLeft<16>(place));
    return hn::Or(place, hn::Set(di, static_cast<int32_t>(0x80008000)));
  }
}

#if HWY_TARGET != HWY_SCALAR
// Returns the sum of the counts in the fields of each word.
template <typename Field>
HWY_INLINE hn::Vec<DI> SumOfFields(hn::Vec<DI> counts) {
  const DI di;
  if constexpr (sizeof(Field) == 1) {
    const auto mask = hn::Set(di, 0x00FF00FF);
    counts = hn::Add(hn::And(counts, mask), hn::And(hn::ShiftRight<8>(counts), mask));
  }
  const auto mask = hn::Set(di, 0xFFFF);
  return hn::And(hn::Add(counts, hn::ShiftRight<16>(counts)), mask);
}

// Does what CountInexact does for half of the rows, from row kFirst on.
template <typename Field, size_t kWords, size_t kFirst>
HWY_INLINE void CountOfRows(const uint32_t* HWY_RESTRICT a,
                            const uint32_t* HWY_RESTRICT b,
                            size_t words,
                            size_t cols,
                            int32_t* HWY_RESTRICT counts) {
  constexpr size_t kHalf = kRows / 2;
  const DI di;
  const hn::Repartition<Field, DI> df;
  const auto one = hn::Set(df, Field{1});
  hn::Vec<decltype(df)> threshold[kHalf][kWords], count[kHalf][kWords];
  NUMSIM_UNROLL for (size_t r = 0; r < kHalf; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      const int32_t* const from = counts + (kFirst + r) * cols + v * hn::Lanes(di);
      threshold[r][v] = hn::BitCast(df, hn::LoadU(di, from));
      count[r][v] = hn::Zero(df);
    }
  }
  const auto count_below = [&](size_t r, size_t v, auto of_a, auto of_b) HWY_ATTR {
    const auto below = hn::Lt(hn::Add(of_a, of_b), threshold[r][v]);
    count[r][v] = hn::IfThenElse(below, hn::Add(count[r][v], one), count[r][v]);
  };
  ForEachWord<Field, kWords, kFirst>(a, b, words, cols, count_below);
  NUMSIM_UNROLL for (size_t r = 0; r < kHalf; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      int32_t* const to = counts + (kFirst + r) * cols + v * hn::Lanes(di);
      hn::StoreU(SumOfFields<Field>(hn::BitCast(di, count[r][v])), di, to);
    }
  }
}
#endif

// Counts, for row r and column c, the sums of two fields that are below the threshold in
// counts[r * cols + c], which the count replaces.
template <typename Field, size_t kWords>
HWY_INLINE void CountInexact(const uint32_t* HWY_RESTRICT a,
                             const uint32_t* HWY_RESTRICT b,
                             size_t words,
                             size_t cols,
                             int32_t* HWY_RESTRICT counts) {
#if HWY_TARGET == HWY_SCALAR
  constexpr size_t kPerWord = 4 / sizeof(Field);
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      const Field threshold = static_cast<Field>(counts[r * cols + c]);
      int32_t count = 0;
      for (size_t w = 0; w < words; ++w) {
        for (size_t i = 0; i < kPerWord; ++i) {
          const uint32_t sum = (a[w * kRows + r] >> (8 * sizeof(Field) * i)) +
                               (b[w * cols + c] >> (8 * sizeof(Field) * i));
          count += static_cast<Field>(sum) < threshold ? 1 : 0;
        }
      }
      counts[r * cols + c] = count;
    }
  }
#else
  CountOfRows<Field, kWords, 0>(a, b, words, cols, counts);
  CountOfRows<Field, kWords, kRows / 2>(a, b, words, cols, counts);
#endif
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
