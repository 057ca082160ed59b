// Aligned sums by vectors. The exponents of the operands are small integers, 4 / size of one in a
// 32-bit word, so that the largest exponent E of a chunk costs little. Given E, there are two ways
// to truncate a product to a multiple of 2^(E - F) and to add it:
//
// Fused lanes round toward zero. A sum that starts at 1.5 * 2^(E - F + M), with M the mantissa bits
// of the lane, and moves by less than a third of that has no bits below 2^(E - F): one fused
// multiply-add rounds a product down to a multiple of 2^(E - F) and adds it. Negative products must
// be rounded up, so 2^(E - F) is added for each that is not such a multiple. These are counted in
// small integers, many to a vector: the lowest set bits of the operands are at known places, and the
// lowest set bit of a product is at the sum of the two.
//
// Integer lanes multiply by 2^(F - E), convert to int32 and add.
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numsim/gemm/internal/gemm_simd.h"

// Arrays of vectors need vectors of a size known to the compiler.
#ifndef HWY_DISABLED_TARGETS  // a sanitizer build has disabled more
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/gemm/internal/gemm_aligned_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/gemm/internal/gemm_tile-inl.h"

// Compiled once for all targets.
#ifndef NUMSIM_GEMM_GEMM_ALIGNED_SERIAL_
#define NUMSIM_GEMM_GEMM_ALIGNED_SERIAL_
namespace numsim {
// The arrays of a panel, in bytes from its start: values, words of exponents and, for fused lanes,
// words of lowest bits.
struct AlignedLayout {
  size_t per_word;  // exponents in a word
  size_t words;     // per vector and chunk
  size_t exponents, lowest_bits, end;

  AlignedLayout(const AlignedSums& sums, size_t width, size_t depth) {
    const size_t chunk = static_cast<size_t>(sums.chunk);
    const bool wide = sums.lanes == AlignedLanes::kDouble;
    per_word = wide ? 2 : 4;
    words = (chunk + per_word - 1) / per_word;
    const size_t chunks = (depth + chunk - 1) / chunk;
    const auto aligned = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
    const size_t bytes = chunks * words * width * sizeof(uint32_t);
    exponents = aligned(depth * width * (wide ? sizeof(double) : sizeof(float)));
    lowest_bits = aligned(exponents + bytes);
    end = sums.lanes == AlignedLanes::kInteger ? lowest_bits : aligned(lowest_bits + bytes);
  }
};

// The exponent of zero: below that of every product, even if the other operand's is the largest.
constexpr int NoExponent(AlignedLanes lanes) {
  return lanes == AlignedLanes::kDouble ? -1024 : -128;
}

// A field of lowest bits holds the place of the lowest set bit of a value, counted from the unit of
// its operand, and the sign of the value in the field's highest bit. So the sum of two fields, an
// integer of `Field`, is negative if the product is, and tells the place of the product's lowest bit.
// Places of products are below kNoLowestBit, which stands for zero.
template <typename Field>
constexpr int kNoLowestBit = std::numeric_limits<Field>::max() / 2;
}  // namespace numsim
#endif

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;

// Returns x with all but the upper `bits` bits of its fraction cleared. Requires bits <= 23.
template <class D, class V>
HWY_INLINE V KeepFraction(D d, V x, int bits) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  using Word = hn::TFromD<decltype(du)>;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  const Word mask = static_cast<Word>(~Word{0} << (kMantissa - bits));
  return hn::BitCast(d, hn::And(hn::BitCast(du, x), hn::Set(du, mask)));
}

// --- Packing.

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

// Writes words of per_word fields each for a chunk: of(x) for its values x, of(0) beyond its end.
template <class D, class Of>
HWY_INLINE void FillWords(D d,
                          const AlignedLayout& layout,
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

// Writes `width` values of each of `depth` positions k, and their words.
template <typename T, class D>
HWY_INLINE void FillPanel(D d,
                          const AlignedSums& sums,
                          const AlignedGrid& grid,
                          const float* HWY_RESTRICT values,
                          size_t width,
                          size_t depth,
                          uint8_t* panel) {
  using Field = std::conditional_t<sizeof(T) == 8, int16_t, int8_t>;
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
  const auto lowest_bit = [&](auto x) HWY_ATTR {
    return LowestBitOf(d, x, grid.unit, std::numeric_limits<Field>::min(), kNoLowestBit<Field>);
  };
  for (size_t k = 0; k < depth; k += chunk) {
    const auto words = [&](size_t array) HWY_ATTR {
      return reinterpret_cast<uint32_t*>(panel + array) + k / chunk * layout.words * width;
    };
    const float* const from = values + k * width;
    const size_t n = HWY_MIN(chunk, depth - k);
    FillWords(d, layout, from, width, n, exponent, words(layout.exponents));
    if (sums.lanes == AlignedLanes::kInteger) continue;
    FillWords(d, layout, from, width, n, lowest_bit, words(layout.lowest_bits));
  }
}

template <typename T>
HWY_INLINE void FillA(const AlignedSums& sums,
                      const AlignedGrid& grid,
                      const float* values,
                      size_t depth,
                      uint8_t* panel) {
  const hn::CappedTag<float, kRows % 4 == 0 ? 4 : 2> d;
  FillPanel<T>(d, sums, grid, values, kRows, depth, panel);
}

template <typename T>
HWY_INLINE void FillB(const AlignedSums& sums,
                      const AlignedGrid& grid,
                      const float* values,
                      size_t depth,
                      uint8_t* panel) {
  const hn::Rebind<float, hn::ScalableTag<T>> d;
  FillPanel<T>(d, sums, grid, values, kVectors * hn::Lanes(d), depth, panel);
}

void FillAligned(const AlignedSums& sums,
                 bool is_a,
                 const AlignedGrid& grid,
                 const float* values,
                 size_t depth,
                 uint8_t* panel) {
  if (sums.lanes == AlignedLanes::kDouble) {
#if HWY_HAVE_FLOAT64
    if (is_a) return FillA<double>(sums, grid, values, depth, panel);
    return FillB<double>(sums, grid, values, depth, panel);
#endif
  }
  if (is_a) return FillA<float>(sums, grid, values, depth, panel);
  FillB<float>(sums, grid, values, depth, panel);
}

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
  for (size_t w = 0; w < words; ++w, a += kRows, b += cols) {
    hn::Vec<decltype(de)> of_b[kWords];
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      of_b[v] = hn::BitCast(de, hn::LoadU(du, b + v * hn::Lanes(du)));
    }
    NUMSIM_UNROLL for (size_t r = 0; r < kHalf; ++r) {
      const auto of_a = hn::BitCast(de, hn::Set(du, a[kFirst + r]));
      NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
        most[r][v] = hn::Max(most[r][v], hn::SaturatedAdd(of_a, of_b[v]));
      }
    }
  }
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
  const hn::RebindToUnsigned<DI> du;
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
  for (size_t w = 0; w < words; ++w, a += kRows, b += cols) {
    hn::Vec<decltype(df)> of_b[kWords];
    NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
      of_b[v] = hn::BitCast(df, hn::LoadU(du, b + v * hn::Lanes(du)));
    }
    NUMSIM_UNROLL for (size_t r = 0; r < kHalf; ++r) {
      const auto of_a = hn::BitCast(df, hn::Set(du, a[kFirst + r]));
      NUMSIM_UNROLL for (size_t v = 0; v < kWords; ++v) {
        const auto below = hn::Lt(hn::Add(of_a, of_b[v]), threshold[r][v]);
        count[r][v] = hn::IfThenElse(below, hn::Add(count[r][v], one), count[r][v]);
      }
    }
  }
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

// --- Sums of a chunk.

// Returns the exponent field of the largest of a chunk's exponents and that of acc. Requires
// exponents in the window: a nonzero acc is then above every exponent that stands for none.
HWY_INLINE hn::Vec<DI> ExponentField(hn::Vec<DI> largest, hn::Vec<DF> acc) {
  const DI di;
  const auto of_products = hn::Add(
      hn::AndNot(hn::Set(di, (1 << 23) - 1), hn::ShiftRight<1>(largest)), hn::Set(di, 127 << 23));
  return hn::Max(of_products, hn::And(hn::BitCast(di, acc), hn::Set(di, 0x7F800000)));
}

// The values of one chunk.
template <typename T>
struct Chunk {
  const T* a;
  const T* b;
  size_t depth;
};

// Fused lanes of float: exponents are in the window.
struct FusedFloat {
  using T = float;
  using Field = int8_t;
  using D = DF;
  using V = hn::Vec<D>;
  static constexpr size_t kWords = kVectors;

  static HWY_INLINE V Load(const float* acc) { return hn::LoadU(D(), acc); }
  static HWY_INLINE void Store(V x, float* acc) { hn::StoreU(x, D(), acc); }

  // Writes 1.5 * 2^(E - F + 23) for a row of sums, and replaces its largest exponents by thresholds.
  static HWY_INLINE void Start(const AlignedSums& sums,
                               const float* acc,
                               int32_t* largest,
                               float* starts) {
    const DI di;
    const auto shift = hn::Set(di, ((23 - sums.fraction_bits) << 23) + (1 << 22));
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = v * hn::Lanes(di);
      const auto field = ExponentField(hn::LoadU(di, largest + at), Load(acc + at));
      hn::StoreU(hn::BitCast(D(), hn::Add(field, shift)), D(), starts + at);
      const auto exponents = hn::Sub(hn::ShiftRight<23>(field), hn::Set(di, 127));
      hn::StoreU(Threshold<Field>(di, sums, exponents), di, largest + at);
    }
  }

  // Returns sum - start + counts 2^(E - F). As `sum` is as large as `start`, that is its last bit.
  static HWY_INLINE V Finish(V sum, V start, const int32_t* counts) {
    const DI di;
    const auto all = hn::Add(hn::BitCast(di, sum), hn::LoadU(di, counts));
    return hn::Sub(hn::BitCast(D(), all), start);
  }
};

#if HWY_HAVE_FLOAT64
// Fused lanes of double: any exponents of float32 values.
struct FusedDouble {
  using T = double;
  using Field = int16_t;
  using D = hn::ScalableTag<double>;
  using DHalf = hn::Rebind<float, D>;
  using V = hn::Vec<D>;
  static constexpr size_t kWords = HWY_TARGET == HWY_SCALAR ? 2 : 1;

  static HWY_INLINE V Load(const float* acc) { return hn::PromoteTo(D(), hn::LoadU(DHalf(), acc)); }
  // Rounds toward zero, except that float32 ends below 2^128. Makes a zero positive.
  static HWY_INLINE void Store(V x, float* acc) {
    const DHalf d;
    const auto large = hn::Ge(hn::Abs(x), hn::Set(D(), 0x1p128));
    if (HWY_UNLIKELY(!hn::AllFalse(D(), large))) {
      const auto infinity = hn::Set(D(), std::numeric_limits<double>::infinity());
      x = hn::IfThenElse(large, hn::CopySign(infinity, x), x);
    }
    hn::StoreU(hn::Add(ToFloat32(d, x), hn::Zero(d)), d, acc);
  }

  // Writes 1.5 * 2^(E - F + 52) for a row of sums, and replaces its largest exponents by thresholds.
  static HWY_INLINE void Start(const AlignedSums& sums,
                               const float* acc,
                               int32_t* largest,
                               double* starts) {
    const hn::Rebind<int64_t, D> dw;
    const auto shift = hn::Set(dw, 1023 + 52 - sums.fraction_bits);
    const auto half = hn::Set(dw, int64_t{1} << 51);
    const auto store = [&](auto exponent, double* to) HWY_ATTR {
      const auto field = hn::ShiftLeft<52>(hn::Add(hn::PromoteTo(dw, exponent), shift));
      hn::StoreU(hn::BitCast(D(), hn::Or(field, half)), D(), to);
    };
#if HWY_TARGET == HWY_SCALAR
    const hn::Rebind<int32_t, D> di;
    for (size_t v = 0; v < kVectors; ++v) {
      const auto exponents = Exponents(di, largest + v, acc + v);
      store(exponents, starts + v);
      hn::StoreU(Threshold<Field>(di, sums, exponents), di, largest + v);
    }
#else
    const hn::Repartition<int32_t, D> di;
    const hn::Half<decltype(di)> dh;
    const auto exponents = Exponents(di, largest, acc);
    store(hn::LowerHalf(dh, exponents), starts);
    store(hn::UpperHalf(dh, exponents), starts + hn::Lanes(D()));
    hn::StoreU(Threshold<Field>(di, sums, exponents), di, largest);
#endif
  }

  // Returns sum - start + counts 2^(E - F). `sum` may be infinite.
  static HWY_INLINE V Finish(V sum, V start, const int32_t* counts) {
    const hn::Rebind<int32_t, D> di;
    const auto unit = hn::Mul(KeepFraction(D(), start, 0), hn::Set(D(), 0x1p-52));
    const auto count = hn::PromoteTo(D(), hn::LoadU(di, counts));
    return hn::Add(hn::Sub(sum, start), hn::Mul(count, unit));
  }

 private:
  // Returns E: -133 if there is nothing but zeros.
  template <class DI>
  static HWY_INLINE hn::Vec<DI> Exponents(DI di, const int32_t* largest, const float* acc) {
    const auto bits = hn::LoadU(di, reinterpret_cast<const int32_t*>(acc));
    const auto field = hn::And(hn::ShiftRight<23>(bits), hn::Set(di, 0xFF));
    const auto of_nonzero = hn::Sub(hn::Max(field, hn::Set(di, 1)), hn::Set(di, 127));
    const auto of_acc = hn::IfThenElse(hn::Eq(bits, hn::Zero(di)), hn::Set(di, -133), of_nonzero);
    return hn::Max(hn::ShiftRight<16>(hn::LoadU(di, largest)), of_acc);
  }
};
#endif

// Advances acc by one chunk. `counts` are those of CountInexact.
template <class L, typename T = typename L::T>
HWY_INLINE void AddFused(const AlignedSums& sums,
                         const Chunk<T>& chunk,
                         const T* HWY_RESTRICT starts,
                         const int32_t* HWY_RESTRICT counts,
                         float* HWY_RESTRICT acc) {
  const typename L::D d;
  const size_t lanes = hn::Lanes(d), cols = kVectors * lanes;
  typename L::V sum[kRows][kVectors];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const auto start = hn::LoadU(d, starts + r * cols + v * lanes);
      const auto carried = L::Load(acc + r * cols + v * lanes);
      const auto magnitude = hn::Sub(hn::Add(start, hn::Abs(carried)), start);
      sum[r][v] = hn::Add(start, hn::CopySignToAbs(magnitude, carried));
    }
  }
  const T* HWY_RESTRICT a = chunk.a;
  const T* HWY_RESTRICT b = chunk.b;
  for (size_t k = 0; k < chunk.depth; ++k, a += kRows, b += cols) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, a[r]);
      sum[r][0] = hn::MulAdd(factor, b0, sum[r][0]);
      sum[r][1] = hn::MulAdd(factor, b1, sum[r][1]);
    }
  }
  const int bits = HWY_MIN(sums.fraction_bits, 23);
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = r * cols + v * lanes;
      const auto total = L::Finish(sum[r][v], hn::LoadU(d, starts + at), counts + at);
      L::Store(KeepFraction(d, total, bits), acc + at);
    }
  }
}

// Adds in float64, because the total may not fit int32. Rounds toward zero.
HWY_INLINE hn::Vec<DF> AddWide(hn::Vec<DI> sum, hn::Vec<DI> carried, int bits) {
  const DF d;
#if HWY_TARGET == HWY_SCALAR
  const hn::Rebind<double, DF> dd;
  const auto total = hn::Add(hn::PromoteTo(dd, sum), hn::PromoteTo(dd, carried));
  return ToFloat32(d, KeepFraction(dd, total, bits));
#elif HWY_HAVE_FLOAT64
  const hn::Repartition<double, DF> dd;
  const hn::Half<DF> dh;
  const hn::Half<DI> dih;
  const auto low = hn::Add(hn::PromoteTo(dd, hn::LowerHalf(dih, sum)),
                           hn::PromoteTo(dd, hn::LowerHalf(dih, carried)));
  const auto high = hn::Add(hn::PromoteTo(dd, hn::UpperHalf(dih, sum)),
                            hn::PromoteTo(dd, hn::UpperHalf(dih, carried)));
  return hn::Combine(
      d, ToFloat32(dh, KeepFraction(dd, high, bits)), ToFloat32(dh, KeepFraction(dd, low, bits)));
#else
  return hn::Zero(d);
#endif
}

// Rounds toward zero, for |x| < 2^31. Highway's conversion also clamps, which is not needed here.
HWY_INLINE hn::Vec<DI> Truncate32(hn::Vec<DF> x) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  return hn::Vec<DI>{_mm512_cvttps_epi32(x.raw)};
#else
  return hn::ConvertTo(DI(), x);
#endif
}

// Advances rows of acc from row r0 on by one chunk, in integer lanes.
template <size_t kGroup>
HWY_INLINE void AddIntegers(const AlignedSums& sums,
                            const Chunk<float>& chunk,
                            const int32_t* largest,
                            size_t r0,
                            float* acc) {
  const DF d;
  const DI di;
  const size_t lanes = hn::Lanes(d), cols = kVectors * lanes;
  largest += r0 * cols;
  acc += r0 * cols;
  HWY_ALIGN float scales[kGroup * kVectors * HWY_MAX_BYTES / sizeof(float)];
  hn::Vec<DI> sum[kGroup][kVectors];
  const uint32_t biases = static_cast<uint32_t>(sums.fraction_bits + 2 * 127);
  const auto numerator = hn::Set(di, static_cast<int32_t>(biases << 23));
  const auto least = hn::Set(di, (127 - 100) * (1 << 23));  // if all products and acc are zero
  NUMSIM_UNROLL for (size_t r = 0; r < kGroup; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = r * cols + v * lanes;
      const auto field =
          hn::Max(ExponentField(hn::LoadU(di, largest + at), hn::LoadU(d, acc + at)), least);
      hn::Store(hn::BitCast(d, hn::Sub(numerator, field)), d, scales + at);
      sum[r][v] = hn::Zero(di);
    }
  }
  const float* HWY_RESTRICT a = chunk.a + r0;
  const float* HWY_RESTRICT b = chunk.b;
  for (size_t k = 0; k < chunk.depth; ++k, a += kRows, b += cols) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    NUMSIM_UNROLL for (size_t r = 0; r < kGroup; ++r) {
      const auto factor = hn::Set(d, a[r]);
      const auto p0 = hn::Mul(hn::Mul(factor, b0), hn::Load(d, scales + r * cols));
      const auto p1 = hn::Mul(hn::Mul(factor, b1), hn::Load(d, scales + r * cols + lanes));
      sum[r][0] = hn::Add(sum[r][0], Truncate32(p0));
      sum[r][1] = hn::Add(sum[r][1], Truncate32(p1));
    }
  }
  const int bits = HWY_MIN(sums.fraction_bits, 23);
  const auto squared = hn::Set(di, 2 * 127 * (1 << 23));
  NUMSIM_UNROLL for (size_t r = 0; r < kGroup; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = r * cols + v * lanes;
      const auto scale = hn::Load(d, scales + at);
      const auto carried = Truncate32(hn::Mul(hn::LoadU(d, acc + at), scale));
      const auto unit = hn::BitCast(d, hn::Sub(squared, hn::BitCast(di, scale)));
      hn::StoreU(hn::Mul(AddWide(sum[r][v], carried, bits), unit), d, acc + at);
    }
  }
}

struct IntegerFloat {
  using T = float;
  using Field = int8_t;
  using D = DF;
  static constexpr size_t kWords = kVectors;
};

// --- Tiles.

template <class L, typename T = typename L::T>
HWY_INLINE void AlignedTile(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  using Field = typename L::Field;
  const size_t cols = kVectors * hn::Lanes(typename L::D());
  const size_t chunk = static_cast<size_t>(sums.chunk);
  const AlignedLayout of_a(sums, kRows, run.panel_depth), of_b(sums, cols, run.panel_depth);
  HWY_ALIGN int32_t largest[kRows * kVectors * HWY_MAX_BYTES / sizeof(T)];
  for (size_t k = run.begin; k < run.end; k += chunk) {
    const size_t word = k / chunk * of_a.words;
    const auto words_a = [&](size_t array) HWY_ATTR {
      return reinterpret_cast<const uint32_t*>(run.a + array) + word * kRows;
    };
    const auto words_b = [&](size_t array) HWY_ATTR {
      return reinterpret_cast<const uint32_t*>(run.b + array) + word * cols;
    };
    const Chunk<T> part{reinterpret_cast<const T*>(run.a) + k * kRows,
                        reinterpret_cast<const T*>(run.b) + k * cols,
                        HWY_MIN(chunk, run.end - k)};
    LargestExponents<Field, L::kWords>(
        words_a(of_a.exponents), words_b(of_b.exponents), of_a.words, cols, largest);
    if constexpr (std::is_same_v<L, IntegerFloat>) {
      constexpr size_t kGroup = kRows / 2;  // rows whose sums fit the registers
      AddIntegers<kGroup>(sums, part, largest, 0, acc);
      AddIntegers<kGroup>(sums, part, largest, kGroup, acc);
    } else {
      HWY_ALIGN T starts[kRows * kVectors * HWY_MAX_BYTES / sizeof(T)];
      for (size_t r = 0; r < kRows; ++r) {
        L::Start(sums, acc + r * cols, largest + r * cols, starts + r * cols);
      }
      CountInexact<Field, L::kWords>(
          words_a(of_a.lowest_bits), words_b(of_b.lowest_bits), of_a.words, cols, largest);
      AddFused<L>(sums, part, starts, largest, acc);
    }
  }
}

void MultiplyAligned(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  switch (sums.lanes) {
    case AlignedLanes::kFloat:
      return AlignedTile<FusedFloat>(sums, run, acc);
    case AlignedLanes::kInteger:
      return AlignedTile<IntegerFloat>(sums, run, acc);
    case AlignedLanes::kDouble:
#if HWY_HAVE_FLOAT64
      return AlignedTile<FusedDouble>(sums, run, acc);
#else
      return;
#endif
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(FillAligned);
HWY_EXPORT(MultiplyAligned);

size_t AlignedPanelSize(const AlignedSums& sums, size_t width, size_t depth) {
  return AlignedLayout(sums, width, depth).end;
}

void FillAlignedPanel(const AlignedSums& sums,
                      bool is_a,
                      const AlignedGrid& grid,
                      const float* values,
                      size_t depth,
                      uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(FillAligned)(sums, is_a, grid, values, depth, panel);
}

void AlignedMultiplyTile(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  const int rounding = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  HWY_DYNAMIC_DISPATCH(MultiplyAligned)(sums, run, acc);
  std::fesetround(rounding);
}

namespace {

// Returns the largest magnitude that a chunk's rounded products and the accumulator add up to, in
// units of 2^(E - F).
double LargestSum(const AccumulationMode& rule, double largest_product) {
  return std::ldexp(largest_product * rule.chunk + 2, rule.fraction_bits) + rule.chunk;
}

// Returns the largest |a b|, (2 - 2^(1-bits_a)) (2 - 2^(1-bits_b)), in units of 2^E.
double LargestProduct(int bits_a, int bits_b) {
  return (2 - std::ldexp(1, 1 - bits_a)) * (2 - std::ldexp(1, 1 - bits_b));
}

// Returns true if the places of lowest bits fit a field, and all products of a chunk can be counted.
template <typename Field>
bool FieldsHold(const AccumulationMode& rule, int places) {
  constexpr int kMostCounted = sizeof(Field) == 1 ? 4 * 0xFF : 0xFFFF;  // of SumOfFields
  return places < kNoLowestBit<Field> && rule.chunk <= kMostCounted;
}

}  // namespace

std::optional<AlignedLanes> LanesForAligned(
    const AccumulationMode& rule, int bits_a, int bits_b, int places, bool in_window) {
  const double product = LargestProduct(bits_a, bits_b);
  const double sum = LargestSum(rule, product);
  if (in_window && bits_a + bits_b <= 24) {
    if (sum < 0x1p22 && FieldsHold<int8_t>(rule, places)) return AlignedLanes::kFloat;
    // The accumulator is added apart, in float64.
    const double products = std::ldexp(product * rule.chunk, rule.fraction_bits);
    if (rule.fraction_bits <= 25 && products < 0x1p31) return AlignedLanes::kInteger;
  }
  if (bits_a + bits_b <= 48 && sum < 0x1p51 && FieldsHold<int16_t>(rule, places) &&
      Float64Tile().rows != 0)
    return AlignedLanes::kDouble;
  return std::nullopt;
}

}  // namespace numsim
#endif  // HWY_ONCE
