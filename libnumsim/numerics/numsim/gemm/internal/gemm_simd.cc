#include "numsim/gemm/internal/gemm_simd.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "numsim/backend/backend.h"

// Arrays of vectors need vectors of a size known to the compiler.
#ifndef HWY_DISABLED_TARGETS  // a sanitizer build has disabled more
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/gemm/internal/gemm_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/gemm/internal/gemm_tile-inl.h"

// Compiled once for all targets.
#ifndef NUMSIM_GEMM_GEMM_SIMD_SERIAL_
#define NUMSIM_GEMM_GEMM_SIMD_SERIAL_
namespace numsim {
// Stores the columns from `begin` on.
template <typename T>
void StoreScaledSerial(const T* sums,
                       size_t sums_stride,
                       size_t begin,
                       const TileScales& scales,
                       const StoredTile& tile) {
  if (begin == tile.cols) return;  // most tiles, after vectors have stored all of it
  for (size_t r = 0; r < tile.rows; ++r) {
    const double scale_a = scales.a[r * scales.a_step];
    float* const out = tile.out + r * tile.stride;
    for (size_t c = begin; c < tile.cols; ++c) {
      const double factor = scale_a * static_cast<double>(scales.b[c * scales.b_step]);
      float x = static_cast<float>(static_cast<double>(sums[r * sums_stride + c]) * factor);
      if (scales.add) x += out[c];
      out[c] = x == x ? x : scales.nan;
    }
  }
}

inline constexpr int32_t kMagnitudeBits = 0x7FFFFFFF, kInfinityBits = 0x7F800000;

inline void AddMagnitudesSerial(const float* x, size_t n, Magnitudes& found) {
  for (size_t i = 0; i < n; ++i) {
    const int32_t bits = std::bit_cast<int32_t>(x[i]) & kMagnitudeBits;
    if (bits >= kInfinityBits) {
      found.finite = false;
    } else if (bits != 0) {
      found.smallest = std::min(found.smallest, bits);
      found.largest = std::max(found.largest, bits);
    }
  }
}
}  // namespace numsim
#endif

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

TileShape Shape32() { return {kRows, kVectors * hn::Lanes(hn::ScalableTag<float>())}; }
TileShape Shape64() {
#if HWY_HAVE_FLOAT64
  return {kRows, kVectors * hn::Lanes(hn::ScalableTag<double>())};
#else
  return {0, 0};
#endif
}
bool Fused() { return kFused; }

template <typename T>
HWY_INLINE void Multiply(const T* HWY_RESTRICT a,
                         const T* HWY_RESTRICT b,
                         size_t depth,
                         bool fresh,
                         T* HWY_RESTRICT acc) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kRows][kVectors];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      sum[r][v] = fresh ? hn::Zero(d) : hn::LoadU(d, acc + (r * kVectors + v) * lanes);
    }
  }
  for (size_t k = 0; k < depth; ++k) {
    const auto b0 = hn::LoadU(d, b);
    const auto b1 = hn::LoadU(d, b + lanes);
    NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, a[r]);
      sum[r][0] = hn::MulAdd(factor, b0, sum[r][0]);
      sum[r][1] = hn::MulAdd(factor, b1, sum[r][1]);
    }
    a += kRows;
    b += kVectors * lanes;
  }
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], d, acc + (r * kVectors + v) * lanes);
    }
  }
}

void Multiply32(const float* a, const float* b, size_t depth, bool fresh, float* acc) {
  Multiply(a, b, depth, fresh, acc);
}

void Multiply64(const double* a, const double* b, size_t depth, bool fresh, double* acc) {
#if HWY_HAVE_FLOAT64
  Multiply(a, b, depth, fresh, acc);
#endif
}

#if HWY_TARGET != HWY_SCALAR
// The words of four rows, transposed 4 x 4 within each block of 128 bits: block j of rows[i] holds word
// 4 j + i of every row.
template <class D>
struct FourTransposed {
  hn::Vec<D> rows[4];

  HWY_INLINE FourTransposed(D d, const uint8_t* const* from, size_t k) {
    const hn::Repartition<uint64_t, D> dd;
    const auto load = [&](size_t v) HWY_ATTR {
      return hn::LoadU(d, reinterpret_cast<const uint32_t*>(from[v] + 4 * k));
    };
    const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
    const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
    const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
    const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
    const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
    rows[0] = hn::BitCast(d, hn::InterleaveLower(dd, low01, low23));
    rows[1] = hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23));
    rows[2] = hn::BitCast(d, hn::InterleaveLower(dd, high01, high23));
    rows[3] = hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23));
  }
};
#endif

// Interleaves the words from k on of rows v to v + count - 1 one by one.
void InterleaveRest(const uint8_t* const* rows,
                    size_t v,
                    size_t count,
                    size_t width,
                    size_t k,
                    size_t n,
                    uint32_t* out) {
  for (; k < n; ++k) {
    for (size_t i = v; i < v + count; ++i) std::memcpy(out + k * width + i, rows[i] + 4 * k, 4);
  }
}

// Takes eight rows and eight words at a time where vectors hold them, else four and four.
void Interleave(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out) {
  size_t v = 0;
#if HWY_TARGET != HWY_SCALAR
#if HWY_MAX_BYTES >= 32
  const hn::FixedTag<uint32_t, 8> d8;
  for (; v + 8 <= width; v += 8) {
    size_t k = 0;
    for (; k + 8 <= n; k += 8) {
      const FourTransposed low(d8, rows + v, k), high(d8, rows + v + 4, k);
      uint32_t* const to = out + k * width + v;
      NUMSIM_UNROLL for (size_t i = 0; i < 4; ++i) {
        hn::StoreU(hn::ConcatLowerLower(d8, high.rows[i], low.rows[i]), d8, to + i * width);
        hn::StoreU(hn::ConcatUpperUpper(d8, high.rows[i], low.rows[i]), d8, to + (i + 4) * width);
      }
    }
    InterleaveRest(rows, v, 8, width, k, n, out);
  }
#endif
  const hn::FixedTag<uint32_t, 4> d4;
  for (; v + 4 <= width; v += 4) {
    size_t k = 0;
    for (; k + 4 <= n; k += 4) {
      const FourTransposed words(d4, rows + v, k);
      NUMSIM_UNROLL for (size_t i = 0; i < 4; ++i) {
        hn::StoreU(words.rows[i], d4, out + (k + i) * width + v);
      }
    }
    InterleaveRest(rows, v, 4, width, k, n, out);
  }
#endif
  InterleaveRest(rows, v, width - v, width, 0, n, out);
}

// Takes 16 bytes of each of the four rows at a time.
void FourRows(const uint8_t* const* rows, size_t n, uint32_t flips, uint32_t* out) {
  size_t v = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<uint8_t, 16> d8;
  const hn::FixedTag<uint16_t, 8> d16;
  const hn::FixedTag<uint32_t, 4> d32;
  const auto flip = hn::Set(d32, flips);
  for (; v + 16 <= n; v += 16) {
    const auto r0 = hn::LoadU(d8, rows[0] + v), r1 = hn::LoadU(d8, rows[1] + v);
    const auto r2 = hn::LoadU(d8, rows[2] + v), r3 = hn::LoadU(d8, rows[3] + v);
    const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, r0, r1));
    const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, r2, r3));
    const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, r0, r1));
    const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, r2, r3));
    const auto store = [&](auto words, size_t at) HWY_ATTR {
      hn::StoreU(hn::Xor(hn::BitCast(d32, words), flip), d32, out + v + at);
    };
    store(hn::InterleaveLower(d16, low01, low23), 0);
    store(hn::InterleaveUpper(d16, low01, low23), 4);
    store(hn::InterleaveLower(d16, high01, high23), 8);
    store(hn::InterleaveUpper(d16, high01, high23), 12);
  }
#endif
  for (; v < n; ++v) {
    const uint32_t word = uint32_t{rows[0][v]} | uint32_t{rows[1][v]} << 8 |
                          uint32_t{rows[2][v]} << 16 | uint32_t{rows[3][v]} << 24;
    out[v] = word ^ flips;
  }
}

#if HWY_HAVE_FLOAT64
using F64 = hn::ScalableTag<double>;
using F32 = hn::Rebind<float, F64>;

template <typename T>
HWY_INLINE hn::Vec<F64> LoadSums(const T* from) {
  const F64 d;
  if constexpr (sizeof(T) == 8) {
    return hn::LoadU(d, from);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, F64>(), from));
  }
}

// Scales and stores the first `whole` columns, a number of whole vectors. kOneScale: all columns have
// the same scale. kFinite: no result is a NaN, and none is added to.
template <bool kOneScale, bool kFinite, typename T>
void StoreRows(const T* sums,
               size_t sums_stride,
               const TileScales& scales,
               const StoredTile& tile,
               size_t whole) {
  const F64 d;
  const F32 df;
  const auto nan = hn::Set(df, scales.nan);
  for (size_t r = 0; r < tile.rows; ++r) {
    const auto scale_a = hn::Set(d, static_cast<double>(scales.a[r * scales.a_step]));
    const auto one = hn::Mul(scale_a, hn::Set(d, static_cast<double>(*scales.b)));
    const T* HWY_RESTRICT row = sums + r * sums_stride;
    float* HWY_RESTRICT out = tile.out + r * tile.stride;
    for (size_t c = 0; c < whole; c += hn::Lanes(d)) {
      const auto factor =
          kOneScale ? one : hn::Mul(scale_a, hn::PromoteTo(d, hn::LoadU(df, scales.b + c)));
      auto x = ToFloat32(df, hn::Mul(LoadSums(row + c), factor));
      if constexpr (!kFinite) {
        if (scales.add) x = hn::Add(hn::LoadU(df, out + c), x);
        x = hn::IfThenElse(hn::Eq(x, x), x, nan);
      }
      hn::StoreU(x, df, out + c);
    }
  }
}
#endif

template <typename T>
void StoreAll(const T* sums, size_t sums_stride, const TileScales& scales, const StoredTile& tile) {
  size_t whole = 0;
#if HWY_HAVE_FLOAT64
  whole = tile.cols - tile.cols % hn::Lanes(F64());
  // Most of the time, and the cheaper cases: integers have no NaN.
  const bool finite = std::is_integral_v<T> && scales.finite && !scales.add;
  const bool one_scale = scales.b_step == 0;
  if (finite && one_scale) {
    StoreRows<true, true>(sums, sums_stride, scales, tile, whole);
  } else if (finite) {
    StoreRows<false, true>(sums, sums_stride, scales, tile, whole);
  } else if (one_scale) {
    StoreRows<true, false>(sums, sums_stride, scales, tile, whole);
  } else {
    StoreRows<false, false>(sums, sums_stride, scales, tile, whole);
  }
#endif
  StoreScaledSerial(sums, sums_stride, whole, scales, tile);
}

// Stores float32 sums without scaling: all scales are 1. Returns the number of columns done.
size_t StoreUnscaled(const float* HWY_RESTRICT sums,
                     size_t sums_stride,
                     const TileScales& scales,
                     const StoredTile& tile) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const size_t whole = tile.cols - tile.cols % lanes;
  const auto nan = hn::Set(d, scales.nan);
  for (size_t r = 0; r < tile.rows; ++r) {
    float* HWY_RESTRICT out = tile.out + r * tile.stride;
    for (size_t c = 0; c < whole; c += lanes) {
      auto x = hn::LoadU(d, sums + r * sums_stride + c);
      if (scales.add) x = hn::Add(hn::LoadU(d, out + c), x);
      hn::StoreU(hn::IfThenElse(hn::Eq(x, x), x, nan), d, out + c);
    }
  }
  return whole;
}

void StoreInt32(const int32_t* sums,
                size_t sums_stride,
                const TileScales& scales,
                const StoredTile& tile) {
  StoreAll(sums, sums_stride, scales, tile);
}
void StoreFloat32(const float* sums,
                  size_t sums_stride,
                  const TileScales& scales,
                  const StoredTile& tile) {
  if (scales.a_step == 0 && scales.b_step == 0 && *scales.a == 1 && *scales.b == 1) {
    const size_t done = StoreUnscaled(sums, sums_stride, scales, tile);
    return StoreScaledSerial(sums, sums_stride, done, scales, tile);
  }
  StoreAll(sums, sums_stride, scales, tile);
}
void StoreFloat64(const double* sums,
                  size_t sums_stride,
                  const TileScales& scales,
                  const StoredTile& tile) {
  StoreAll(sums, sums_stride, scales, tile);
}

void FindMagnitudes(const float* HWY_RESTRICT x, size_t n, Magnitudes& found) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  const size_t lanes = hn::Lanes(d), whole = n - n % lanes;
  const auto mask = hn::Set(d, kMagnitudeBits), infinity = hn::Set(d, kInfinityBits);
  auto smallest = mask, largest = hn::Zero(d), top = hn::Zero(d);
  for (size_t i = 0; i < whole; i += lanes) {
    const auto bits = hn::And(hn::BitCast(d, hn::LoadU(df, x + i)), mask);
    const auto counts = hn::And(hn::Gt(bits, hn::Zero(d)), hn::Lt(bits, infinity));
    smallest = hn::Min(smallest, hn::IfThenElse(counts, bits, mask));
    largest = hn::Max(largest, hn::IfThenElseZero(counts, bits));
    top = hn::Max(top, bits);
  }
  found.smallest = std::min(found.smallest, hn::GetLane(hn::MinOfLanes(d, smallest)));
  found.largest = std::max(found.largest, hn::GetLane(hn::MaxOfLanes(d, largest)));
  found.finite = found.finite && hn::GetLane(hn::MaxOfLanes(d, top)) < kInfinityBits;
  AddMagnitudesSerial(x + whole, n - whole, found);
}

void Promote(float* HWY_RESTRICT sums, float* HWY_RESTRICT totals, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, totals + i), hn::LoadU(d, sums + i)), d, totals + i);
    hn::StoreU(hn::Zero(d), d, sums + i);
  }
  for (; i < n; ++i) {
    totals[i] += sums[i];
    sums[i] = 0;
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(Shape32);
HWY_EXPORT(Shape64);
HWY_EXPORT(Fused);
HWY_EXPORT(Multiply32);
HWY_EXPORT(Multiply64);
HWY_EXPORT(FindMagnitudes);
HWY_EXPORT(Promote);
HWY_EXPORT(Interleave);
HWY_EXPORT(FourRows);
HWY_EXPORT(StoreInt32);
HWY_EXPORT(StoreFloat32);
HWY_EXPORT(StoreFloat64);

TileShape Float32Tile() { return HWY_DYNAMIC_DISPATCH(Shape32)(); }
TileShape Float64Tile() { return HWY_DYNAMIC_DISPATCH(Shape64)(); }
bool TileIsFused() { return HWY_DYNAMIC_DISPATCH(Fused)(); }

void MultiplyTile(const float* a, const float* b, size_t depth, bool fresh, float* acc) {
  HWY_DYNAMIC_DISPATCH(Multiply32)(a, b, depth, fresh, acc);
}

void MultiplyTile(const double* a, const double* b, size_t depth, bool fresh, double* acc) {
  HWY_DYNAMIC_DISPATCH(Multiply64)(a, b, depth, fresh, acc);
}

void InterleaveRows(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(Interleave)(rows, width, n, out);
}

void AddMagnitudes(const float* x, size_t n, Magnitudes& found) {
  if (UsesScalarReference()) return AddMagnitudesSerial(x, n, found);
  HWY_DYNAMIC_DISPATCH(FindMagnitudes)(x, n, found);
}

void PromoteSums(float* sums, float* totals, size_t n) {
  HWY_DYNAMIC_DISPATCH(Promote)(sums, totals, n);
}

void PromoteSums(float* sums, double* totals, size_t n) {
  for (size_t i = 0; i < n; ++i) totals[i] += double{sums[i]};
  std::fill_n(sums, n, 0.0f);
}

void InterleaveBytes(const uint8_t* const* rows, size_t n, uint32_t flips, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(FourRows)(rows, n, flips, out);
}

void StoreScaled(const int32_t* sums,
                 size_t sums_stride,
                 const TileScales& scales,
                 const StoredTile& tile) {
  if (UsesScalarReference()) return StoreScaledSerial(sums, sums_stride, 0, scales, tile);
  HWY_DYNAMIC_DISPATCH(StoreInt32)(sums, sums_stride, scales, tile);
}

void StoreScaled(const float* sums,
                 size_t sums_stride,
                 const TileScales& scales,
                 const StoredTile& tile) {
  if (UsesScalarReference()) return StoreScaledSerial(sums, sums_stride, 0, scales, tile);
  HWY_DYNAMIC_DISPATCH(StoreFloat32)(sums, sums_stride, scales, tile);
}

void StoreScaled(const double* sums,
                 size_t sums_stride,
                 const TileScales& scales,
                 const StoredTile& tile) {
  if (UsesScalarReference()) return StoreScaledSerial(sums, sums_stride, 0, scales, tile);
  HWY_DYNAMIC_DISPATCH(StoreFloat64)(sums, sums_stride, scales, tile);
}

}  // namespace numsim
#endif  // HWY_ONCE
