// Aligned sums by vectors. The exponents of the operands are small integers, 4 / size of one in a
// 32-bit word, so that the largest exponent E of a chunk costs little. Given E, there are two ways
// to truncate a product to a multiple of 2^(E - F) and to add it:
//
// Fused lanes round toward zero. A sum that starts at 2^(E - F + M), with M the mantissa bits of the
// lane, and grows by less than itself has no bits below 2^(E - F): one fused multiply-add truncates
// and adds. Magnitudes are truncated, so positive and negative products have sums of their own: a
// panel of B holds max(b, 0) and min(b, 0), and the sign of a decides which one goes where.
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
// The arrays of a panel, in bytes from its start.
struct AlignedLayout {
  size_t per_word;  // exponents in a word
  size_t words;     // per vector and chunk
  size_t signs, exponents, end;

  AlignedLayout(const AlignedSums& sums, size_t width, size_t depth) {
    const size_t chunk = static_cast<size_t>(sums.chunk);
    const bool wide = sums.lanes == AlignedLanes::kDouble;
    per_word = wide ? 2 : 4;
    words = (chunk + per_word - 1) / per_word;
    const size_t chunks = (depth + chunk - 1) / chunk;
    const auto aligned = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
    signs = aligned(2 * depth * width * (wide ? sizeof(double) : sizeof(float)));
    exponents = aligned(signs + depth * sizeof(uint32_t));
    end = aligned(exponents + chunks * words * width * sizeof(uint32_t));
  }
};

// The exponent of zero: below that of every product, even if the other operand's is the largest.
constexpr int NoExponent(AlignedLanes lanes) {
  return lanes == AlignedLanes::kDouble ? -1024 : -128;
}
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

// Writes `width` values of each of `depth` positions k, and the words of their exponents. Splits
// the values of B in fused lanes: max(x, 0), then min(x, 0), for each k.
template <typename T, class D>
HWY_INLINE void FillPanel(D d,
                          const AlignedSums& sums,
                          bool split,
                          int least_exponent,
                          const float* HWY_RESTRICT values,
                          size_t width,
                          size_t depth,
                          uint8_t* panel) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<T, D> dt;
  const AlignedLayout layout(sums, width, depth);
  const size_t lanes = hn::Lanes(d);
  const size_t chunk = static_cast<size_t>(sums.chunk);
  const int bits = 32 / static_cast<int>(layout.per_word);
  T* HWY_RESTRICT to = reinterpret_cast<T*>(panel);
  uint32_t* HWY_RESTRICT words = reinterpret_cast<uint32_t*>(panel + layout.exponents);
  const auto none = hn::Set(di, NoExponent(sums.lanes));
  const auto mask = hn::Set(di, bits == 8 ? 0xFF : 0xFFFF);
  const auto zero = hn::Zero(d);
  for (size_t k0 = 0; k0 < depth; k0 += chunk) {
    const size_t end = HWY_MIN(depth, k0 + chunk);
    for (size_t w = 0; w < layout.words; ++w, words += width) {
      for (size_t v = 0; v < width; v += lanes) {
        auto word = hn::Zero(di);
        for (size_t i = layout.per_word; i-- > 0;) {
          const size_t k = k0 + w * layout.per_word + i;
          auto exponent = none;
          if (k < end) {
            auto x = hn::LoadU(d, values + k * width + v);
            x = hn::IfThenElseZero(hn::IsFinite(x), x);
            const auto field = hn::And(hn::ShiftRight<23>(hn::BitCast(di, x)), hn::Set(di, 0xFF));
            exponent = hn::Max(hn::Sub(field, hn::Set(di, 127)), hn::Set(di, least_exponent));
            exponent = hn::IfThenElse(hn::RebindMask(di, hn::Eq(x, zero)), none, exponent);
            const auto store = [&](auto y, size_t at) HWY_ATTR {
              if constexpr (sizeof(T) == 8) {
                hn::StoreU(hn::PromoteTo(dt, y), dt, to + at);
              } else {
                hn::StoreU(y, d, to + at);
              }
            };
            if (split) {
              store(hn::Max(x, zero), 2 * k * width + v);
              store(hn::Min(x, zero), (2 * k + 1) * width + v);
            } else {
              store(x, k * width + v);
            }
          }
          word = bits == 8 ? hn::ShiftLeft<8>(word) : hn::ShiftLeft<16>(word);
          word = hn::Or(word, hn::And(exponent, mask));
        }
        hn::StoreU(word, di, reinterpret_cast<int32_t*>(words) + v);
      }
    }
  }
}

// The bytes of max(b, 0), and of min(b, 0), of one k of a panel of B.
template <typename T>
HWY_INLINE size_t HalfBytes() {
  return kVectors * hn::Lanes(hn::ScalableTag<T>()) * sizeof(T);
}

// Writes for each k a word whose bit r, counted from bit log2(HalfBytes()) on, is the sign of row r.
template <typename T>
HWY_INLINE void FillSigns(const float* values, size_t depth, uint32_t* HWY_RESTRICT signs) {
  const int shift = std::countr_zero(HalfBytes<T>());
  for (size_t k = 0; k < depth; ++k, values += kRows) {
    uint32_t word = 0;
    for (size_t r = 0; r < kRows; ++r) word |= (std::bit_cast<uint32_t>(values[r]) >> 31) << r;
    signs[k] = word << shift;
  }
}

template <typename T>
HWY_INLINE void FillA(
    const AlignedSums& sums, int least, const float* values, size_t depth, uint8_t* panel) {
  const hn::CappedTag<float, kRows % 4 == 0 ? 4 : 2> d;
  FillPanel<T>(d, sums, false, least, values, kRows, depth, panel);
  if (sums.lanes == AlignedLanes::kInteger) return;
  const size_t at = AlignedLayout(sums, kRows, depth).signs;
  FillSigns<T>(values, depth, reinterpret_cast<uint32_t*>(panel + at));
}

template <typename T>
HWY_INLINE void FillB(
    const AlignedSums& sums, int least, const float* values, size_t depth, uint8_t* panel) {
  const hn::Rebind<float, hn::ScalableTag<T>> d;
  const size_t cols = kVectors * hn::Lanes(d);
  FillPanel<T>(d, sums, sums.lanes != AlignedLanes::kInteger, least, values, cols, depth, panel);
}

void FillAligned(const AlignedSums& sums,
                 bool is_a,
                 int least,
                 const float* values,
                 size_t depth,
                 uint8_t* panel) {
  if (sums.lanes == AlignedLanes::kDouble) {
#if HWY_HAVE_FLOAT64
    if (is_a) return FillA<double>(sums, least, values, depth, panel);
    return FillB<double>(sums, least, values, depth, panel);
#endif
  }
  if (is_a) return FillA<float>(sums, least, values, depth, panel);
  FillB<float>(sums, least, values, depth, panel);
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

// Returns the exponent field of the largest of a chunk's exponents and that of acc. Requires
// exponents in the window: a nonzero acc is then above every exponent that stands for none.
HWY_INLINE hn::Vec<DI> ExponentField(hn::Vec<DI> largest, hn::Vec<DF> acc) {
  const DI di;
  const auto of_products = hn::Add(
      hn::AndNot(hn::Set(di, (1 << 23) - 1), hn::ShiftRight<1>(largest)), hn::Set(di, 127 << 23));
  return hn::Max(of_products, hn::And(hn::BitCast(di, acc), hn::Set(di, 0x7F800000)));
}

// --- Sums of a chunk.

// The operands of one chunk.
template <typename T>
struct Chunk {
  const T* a;
  const T* b;
  const uint32_t* signs;
  const int32_t* largest;
  size_t depth;
};

// Fused lanes of float: exponents are in the window.
struct FusedFloat {
  using T = float;
  using Exponent = int8_t;
  using D = DF;
  using V = hn::Vec<D>;
  static constexpr size_t kWords = kVectors;

  static HWY_INLINE V Load(const float* acc) { return hn::LoadU(D(), acc); }
  static HWY_INLINE void Store(V x, float* acc) { hn::StoreU(x, D(), acc); }

  // Writes 2^(E - F + 23) for a row of sums.
  static HWY_INLINE void Starts(const AlignedSums& sums,
                                const int32_t* largest,
                                const float* acc,
                                V (&starts)[kVectors]) {
    const DI di;
    const auto shift = hn::Set(di, (23 - sums.fraction_bits) * (1 << 23));
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = v * hn::Lanes(di);
      const auto field = ExponentField(hn::LoadU(di, largest + at), Load(acc + at));
      starts[v] = hn::BitCast(D(), hn::Add(field, shift));
    }
  }
};

#if HWY_HAVE_FLOAT64
// Fused lanes of double: any exponents of float32 values.
struct FusedDouble {
  using T = double;
  using Exponent = int16_t;
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

  // Writes 2^(E - F + 52) for a row of sums.
  static HWY_INLINE void Starts(const AlignedSums& sums,
                                const int32_t* largest,
                                const float* acc,
                                V (&starts)[kVectors]) {
    const hn::Rebind<int64_t, D> dw;
    const auto shift = hn::Set(dw, 1023 + 52 - sums.fraction_bits);
    const auto start = [&](auto exponent) HWY_ATTR {
      return hn::BitCast(D(), hn::ShiftLeft<52>(hn::Add(hn::PromoteTo(dw, exponent), shift)));
    };
#if HWY_TARGET == HWY_SCALAR
    starts[0] = start(Exponents(hn::Rebind<int32_t, D>(), largest, acc));
    starts[1] = start(Exponents(hn::Rebind<int32_t, D>(), largest + 1, acc + 1));
#else
    const hn::Repartition<int32_t, D> di;
    const hn::Half<decltype(di)> dh;
    const auto exponents = Exponents(di, largest, acc);
    starts[0] = start(hn::LowerHalf(dh, exponents));
    starts[1] = start(hn::UpperHalf(dh, exponents));
#endif
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

// Advances the sums of kGroup rows from row r0 on by one chunk.
template <class L, size_t kGroup, typename T = typename L::T>
HWY_INLINE void AddFused(const AlignedSums& sums, const Chunk<T>& chunk, size_t r0, float* acc) {
  const typename L::D d;
  const size_t lanes = hn::Lanes(d), cols = kVectors * lanes;
  const auto zero = hn::Zero(d);
  const size_t half = HalfBytes<T>();
  typename L::V up[kGroup][kVectors], down[kGroup][kVectors];
  HWY_ALIGN T all_starts[kGroup * kVectors * HWY_MAX_BYTES / sizeof(T)];
  acc += r0 * cols;
  NUMSIM_UNROLL for (size_t r = 0; r < kGroup; ++r) {
    typename L::V starts[kVectors];
    L::Starts(sums, chunk.largest + (r0 + r) * cols, acc + r * cols, starts);
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const auto carried = L::Load(acc + r * cols + v * lanes);
      hn::Store(starts[v], d, all_starts + r * cols + v * lanes);
      up[r][v] = hn::Add(starts[v], hn::Max(carried, zero));
      down[r][v] = hn::Sub(hn::Min(carried, zero), starts[v]);
    }
  }
  const T* HWY_RESTRICT a = chunk.a + r0;
  const uint8_t* HWY_RESTRICT b = reinterpret_cast<const uint8_t*>(chunk.b);
  for (size_t k = 0; k < chunk.depth; ++k, a += kRows, b += 2 * half) {
    const size_t signs = chunk.signs[k] >> r0;
    if (r0 != 0) {  // B of this chunk is not read again
      for (size_t i = 0; i < 2 * half; i += 64) hwy::Prefetch(b + 2 * half * chunk.depth + i);
    }
    NUMSIM_UNROLL for (size_t r = 0; r < kGroup; ++r) {
      const size_t negative = (signs >> r) & half;
      const T* const same = reinterpret_cast<const T*>(b + negative);
      const T* const other = reinterpret_cast<const T*>(b + (negative ^ half));
      const auto factor = hn::Set(d, a[r]);
      up[r][0] = hn::MulAdd(factor, hn::LoadU(d, same), up[r][0]);
      up[r][1] = hn::MulAdd(factor, hn::LoadU(d, same + lanes), up[r][1]);
      down[r][0] = hn::MulAdd(factor, hn::LoadU(d, other), down[r][0]);
      down[r][1] = hn::MulAdd(factor, hn::LoadU(d, other + lanes), down[r][1]);
    }
  }
  const int bits = HWY_MIN(sums.fraction_bits, 23);
  NUMSIM_UNROLL for (size_t r = 0; r < kGroup; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const auto start = hn::Load(d, all_starts + r * cols + v * lanes);
      const auto sum = hn::Add(hn::Sub(up[r][v], start), hn::Add(down[r][v], start));
      L::Store(KeepFraction(d, sum, bits), acc + r * cols + v * lanes);
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

// Does what AddFused does, in integer lanes.
template <size_t kGroup>
HWY_INLINE void AddIntegers(const AlignedSums& sums,
                            const Chunk<float>& chunk,
                            size_t r0,
                            float* acc) {
  const DF d;
  const DI di;
  const size_t lanes = hn::Lanes(d), cols = kVectors * lanes;
  const int32_t* const largest = chunk.largest + r0 * cols;
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
  using Exponent = int8_t;
  using D = DF;
  static constexpr size_t kWords = kVectors;
};

// --- Tiles.

template <class L, typename T = typename L::T>
HWY_INLINE void AlignedTile(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  constexpr size_t kGroup = kRows / 2;  // rows whose sums fit the registers
  const size_t cols = kVectors * hn::Lanes(typename L::D());
  const size_t chunk = static_cast<size_t>(sums.chunk);
  const AlignedLayout of_a(sums, kRows, run.panel_depth), of_b(sums, cols, run.panel_depth);
  const auto words = [&](const uint8_t* panel, const AlignedLayout& layout, size_t k, size_t width)
                         HWY_ATTR {
                           return reinterpret_cast<const uint32_t*>(panel + layout.exponents) +
                                  k / chunk * layout.words * width;
                         };
  constexpr size_t kSplit = std::is_same_v<L, IntegerFloat> ? 1 : 2;
  HWY_ALIGN int32_t largest[kRows * kVectors * HWY_MAX_BYTES / sizeof(T)];
  for (size_t k = run.begin; k < run.end; k += chunk) {
    LargestExponents<typename L::Exponent, L::kWords>(
        words(run.a, of_a, k, kRows), words(run.b, of_b, k, cols), of_a.words, cols, largest);
    const Chunk<T> part{reinterpret_cast<const T*>(run.a) + k * kRows,
                        reinterpret_cast<const T*>(run.b) + kSplit * k * cols,
                        reinterpret_cast<const uint32_t*>(run.a + of_a.signs) + k,
                        largest,
                        HWY_MIN(chunk, run.end - k)};
    if constexpr (std::is_same_v<L, IntegerFloat>) {
      AddIntegers<kGroup>(sums, part, 0, acc);
      AddIntegers<kGroup>(sums, part, kGroup, acc);
    } else {
      AddFused<L, kGroup>(sums, part, 0, acc);
      AddFused<L, kGroup>(sums, part, kGroup, acc);
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
                      int least_exponent,
                      const float* values,
                      size_t depth,
                      uint8_t* panel) {
  HWY_DYNAMIC_DISPATCH(FillAligned)(sums, is_a, least_exponent, values, depth, panel);
}

void AlignedMultiplyTile(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  const int rounding = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  HWY_DYNAMIC_DISPATCH(MultiplyAligned)(sums, run, acc);
  std::fesetround(rounding);
}

namespace {

// Returns the largest magnitude of a chunk's positive products and the accumulator, in units of
// 2^(E - F).
double LargestSum(const AccumulationMode& rule, double largest_product) {
  return std::ldexp(largest_product * rule.chunk + 2, rule.fraction_bits);
}

// Returns the largest |a b|, (2 - 2^(1-bits_a)) (2 - 2^(1-bits_b)), in units of 2^E.
double LargestProduct(int bits_a, int bits_b) {
  return (2 - std::ldexp(1, 1 - bits_a)) * (2 - std::ldexp(1, 1 - bits_b));
}

}  // namespace

std::optional<AlignedLanes> LanesForAligned(const AccumulationMode& rule,
                                            int bits_a,
                                            int bits_b,
                                            bool in_window) {
  const double product = LargestProduct(bits_a, bits_b);
  const double sum = LargestSum(rule, product);
  if (in_window && bits_a + bits_b <= 24) {
    if (sum < 0x1p23) return AlignedLanes::kFloat;
    // The accumulator is added apart, in float64.
    const double products = std::ldexp(product * rule.chunk, rule.fraction_bits);
    if (rule.fraction_bits <= 25 && products < 0x1p31) return AlignedLanes::kInteger;
  }
  if (bits_a + bits_b <= 48 && sum < 0x1p52 && Float64Tile().rows != 0)
    return AlignedLanes::kDouble;
  return std::nullopt;
}

}  // namespace numsim
#endif  // HWY_ONCE
