#include <algorithm>
#include <cstdint>
#include <limits>

#include "numsim/gemm/internal/gemm_simd.h"

// Arrays of vectors need vectors of a size known to the compiler.
#ifndef HWY_DISABLED_TARGETS  // a sanitizer build has disabled more
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/gemm/internal/gemm_aligned_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/gemm/internal/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rounds toward zero, for |x| < 2^31. Highway's conversion also clamps, which is not needed here.
template <class D, class V>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> Truncate32(D d, V x) {
  const hn::RebindToSigned<D> di;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  if constexpr (sizeof(V) == 64) {
    (void)d;
    return hn::Vec<decltype(di)>{_mm512_cvttps_epi32(x.raw)};
  }
#endif
  (void)d;
  return hn::ConvertTo(di, x);
}

// Returns 2^e of a float32 accumulator: 0 for zero, otherwise at least 2^-126. An infinity, which
// occurs only in float64 lanes, gets a power above that of any product but with a normal inverse.
template <class D, class V>
HWY_INLINE V PowerOf(D d, V x) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  using Word = hn::TFromD<decltype(du)>;
  constexpr Word kExponent =
      sizeof(T) == 4 ? Word{0x7F800000u} : static_cast<Word>(0x7FF0000000000000ull);
  const auto power = hn::BitCast(d, hn::And(hn::BitCast(du, x), hn::Set(du, kExponent)));
  const auto least = hn::Set(d, static_cast<T>(0x1p-126));
  auto in_range = hn::Max(power, least);
  if constexpr (sizeof(T) == 8) in_range = hn::Min(in_range, hn::Set(d, static_cast<T>(0x1p300)));
  return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), in_range);
}

// Returns 2^bits / x for a power of two x, and 2^bits for x == 0. Requires a normal result.
template <class D, class V>
HWY_INLINE V PowerOver(D d, V x, int bits) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  using Word = hn::TFromD<decltype(du)>;
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  constexpr int kBias = sizeof(T) == 4 ? 127 : 1023;
  const auto one = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, T{1}), x);
  const Word numerator = static_cast<Word>(bits + 2 * kBias) << kMantissa;
  return hn::BitCast(d, hn::Sub(hn::Set(du, numerator), hn::BitCast(du, one)));
}

// True if the sum of one chunk, in units of 2^(E - F), is at most 2^24, so that float32 holds it
// exactly.
HWY_INLINE bool SumsFitFloat(const AlignedSums& sums) {
  return sums.fraction_bits <= 16 &&
         4 * int64_t{sums.chunk} + 2 <= int64_t{1} << (24 - sums.fraction_bits);
}

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

// Chunks in float32 lanes: terms and sums are int32.
struct AlignedInFloat32 {
  static constexpr float kLeastPower = 0;  // exponents in the window are above -133
  using T = float;
  using D = hn::ScalableTag<float>;
  using DI = hn::RebindToSigned<D>;
  using V = hn::Vec<D>;
  using Sum = hn::Vec<DI>;

  static HWY_INLINE V Load(const float* acc) { return hn::LoadU(D(), acc); }
  static HWY_INLINE void Store(V x, float* acc) { hn::StoreU(x, D(), acc); }
  static HWY_INLINE Sum Zero() { return hn::Zero(DI()); }
  static HWY_INLINE Sum Term(V x) { return Truncate32(D(), x); }

  // Returns (sum + carried) 2^(E - F) truncated to min(F, 23) fraction bits; scale = 2^(F - E).
  static HWY_INLINE V Finish(const AlignedSums& sums, Sum sum, Sum carried, V scale) {
    const D d;
    const int bits = HWY_MIN(sums.fraction_bits, 23);
    const V unit = PowerOver(d, scale, 0);
    if (SumsFitFloat(sums)) {
      const V total = hn::ConvertTo(d, hn::Add(sum, carried));
      return hn::Mul(KeepFraction(d, total, bits), unit);
    }
    return hn::Mul(AddWide(sum, carried, bits), unit);
  }

 private:
  // Adds in float64, because the total may not fit int32.
  static HWY_INLINE V AddWide(Sum sum, Sum carried, int bits) {
    const D d;
#if HWY_TARGET == HWY_SCALAR
    const hn::Rebind<double, D> dd;
    const auto total = hn::Add(hn::PromoteTo(dd, sum), hn::PromoteTo(dd, carried));
    return ToFloat32(d, KeepFraction(dd, total, bits));
#elif HWY_HAVE_FLOAT64
    const hn::Repartition<double, D> dd;
    const hn::Half<D> dh;
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
};

#if HWY_HAVE_FLOAT64
// Chunks in float64 lanes: terms and sums are integers there.
struct AlignedInFloat64 {
  static constexpr double kLeastPower = 0x1p-133;
  using T = double;
  using D = hn::ScalableTag<double>;
  using DF = hn::Rebind<float, D>;
  using V = hn::Vec<D>;
  using Sum = V;

  static HWY_INLINE V Load(const float* acc) { return hn::PromoteTo(D(), hn::LoadU(DF(), acc)); }
  static HWY_INLINE void Store(V x, float* acc) { hn::StoreU(ToFloat32(DF(), x), DF(), acc); }
  static HWY_INLINE Sum Zero() { return hn::Zero(D()); }
  static HWY_INLINE Sum Term(V x) { return hn::Trunc(x); }

  static HWY_INLINE V Finish(const AlignedSums& sums, Sum sum, Sum carried, V scale) {
    const D d;
    const int bits = HWY_MIN(sums.fraction_bits, 23);
    const V kept = hn::Mul(KeepFraction(d, hn::Add(sum, carried), bits), PowerOver(d, scale, 0));
    const V magnitude = hn::Abs(kept);
    // float32 has multiples of 2^-149 and ends below 2^128.
    const V tiny = hn::Mul(hn::Trunc(hn::Mul(kept, hn::Set(d, 0x1p149))), hn::Set(d, 0x1p-149));
    const V ranged = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-126)), tiny, kept);
    const V infinity = hn::CopySign(hn::Set(d, std::numeric_limits<double>::infinity()), kept);
    const V result = hn::IfThenElse(hn::Ge(magnitude, hn::Set(d, 0x1p128)), infinity, ranged);
    return hn::Add(result, hn::Zero(d));  // makes a zero positive
  }
};
#endif

// Writes 2^(F - E) for every sum of a chunk.
template <class Lanes, typename T = typename Lanes::T>
HWY_INLINE void ChunkScales(const AlignedSums& sums,
                            const T* HWY_RESTRICT a,
                            const T* HWY_RESTRICT b,
                            size_t depth,
                            const float* acc,
                            T* HWY_RESTRICT scales) {
  const typename Lanes::D d;
  const size_t lanes = hn::Lanes(d);
  const size_t cols = kVectors * lanes;
  typename Lanes::V power[kRows][kVectors];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      power[r][v] = hn::Max(PowerOf(d, Lanes::Load(acc + r * cols + v * lanes)),
                            hn::Set(d, Lanes::kLeastPower));
    }
  }
  for (size_t k = 0; k < depth; ++k, a += kRows, b += cols) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, a[r]);
      power[r][0] = hn::Max(power[r][0], hn::Mul(factor, b0));
      power[r][1] = hn::Max(power[r][1], hn::Mul(factor, b1));
    }
  }
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const auto scale = PowerOver(d, power[r][v], sums.fraction_bits);
      hn::StoreU(scale, d, scales + r * cols + v * lanes);
    }
  }
}

// Advances acc by one chunk.
template <class Lanes, typename T = typename Lanes::T>
HWY_INLINE void ChunkSums(const AlignedSums& sums,
                          const T* HWY_RESTRICT a,
                          const T* HWY_RESTRICT b,
                          size_t depth,
                          const T* HWY_RESTRICT scales,
                          float* HWY_RESTRICT acc) {
  const typename Lanes::D d;
  const size_t lanes = hn::Lanes(d);
  const size_t cols = kVectors * lanes;
  typename Lanes::Sum sum[kRows][kVectors];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) sum[r][v] = Lanes::Zero();
  }
  for (size_t k = 0; k < depth; ++k, a += kRows, b += cols) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, a[r]);
      const auto p0 = hn::Mul(hn::Mul(factor, b0), hn::LoadU(d, scales + r * cols));
      const auto p1 = hn::Mul(hn::Mul(factor, b1), hn::LoadU(d, scales + r * cols + lanes));
      sum[r][0] = hn::Add(sum[r][0], Lanes::Term(p0));
      sum[r][1] = hn::Add(sum[r][1], Lanes::Term(p1));
    }
  }
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = r * cols + v * lanes;
      const auto scale = hn::LoadU(d, scales + at);
      const auto carried = Lanes::Term(hn::Mul(Lanes::Load(acc + at), scale));
      Lanes::Store(Lanes::Finish(sums, sum[r][v], carried, scale), acc + at);
    }
  }
}

template <class Lanes, typename T = typename Lanes::T>
HWY_INLINE void AlignedTile(const AlignedSums& sums,
                            const AlignedPanel<T>& a,
                            const AlignedPanel<T>& b,
                            size_t depth,
                            float* acc) {
  const size_t cols = kVectors * hn::Lanes(typename Lanes::D());
  const size_t chunk = static_cast<size_t>(sums.chunk);
  HWY_ALIGN T scales[kRows * kVectors * HWY_MAX_BYTES / sizeof(T)];
  for (size_t k = 0; k < depth; k += chunk) {
    const size_t n = HWY_MIN(chunk, depth - k);
    ChunkScales<Lanes>(sums, a.powers + k * kRows, b.powers + k * cols, n, acc, scales);
    ChunkSums<Lanes>(sums, a.values + k * kRows, b.values + k * cols, n, scales, acc);
  }
}

void Aligned32(const AlignedSums& sums,
               const AlignedPanel<float>& a,
               const AlignedPanel<float>& b,
               size_t depth,
               float* acc) {
  AlignedTile<AlignedInFloat32>(sums, a, b, depth, acc);
}

void Aligned64(const AlignedSums& sums,
               const AlignedPanel<double>& a,
               const AlignedPanel<double>& b,
               size_t depth,
               float* acc) {
#if HWY_HAVE_FLOAT64
  AlignedTile<AlignedInFloat64>(sums, a, b, depth, acc);
#endif
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(Aligned32);
HWY_EXPORT(Aligned64);

void AlignedMultiplyTile(const AlignedSums& sums,
                         const AlignedPanel<float>& a,
                         const AlignedPanel<float>& b,
                         size_t depth,
                         float* acc) {
  HWY_DYNAMIC_DISPATCH(Aligned32)(sums, a, b, depth, acc);
}

void AlignedMultiplyTile(const AlignedSums& sums,
                         const AlignedPanel<double>& a,
                         const AlignedPanel<double>& b,
                         size_t depth,
                         float* acc) {
  HWY_DYNAMIC_DISPATCH(Aligned64)(sums, a, b, depth, acc);
}

bool AlignedFitsFloat32(const AlignedSums& sums, int bits_a, int bits_b) {
  if (bits_a + bits_b > 24 || sums.fraction_bits > 25) return false;
  // The bound on |a b|, (2 - 2^(1-bits_a)) (2 - 2^(1-bits_b)), in units of 2^-F.
  const double largest = (2 - 2.0 / static_cast<double>(1 << bits_a)) *
                         (2 - 2.0 / static_cast<double>(1 << bits_b)) *
                         static_cast<double>(int64_t{1} << sums.fraction_bits);
  return largest * sums.chunk < 0x1p31;
}

}  // namespace numsim
#endif  // HWY_ONCE
