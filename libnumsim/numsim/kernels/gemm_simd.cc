#include "numsim/kernels/gemm_simd.h"

#include <cstdint>
#include <cstring>

#include "numsim/kernels/simd_target.h"

// Arrays of vectors need vectors of a size known to the compiler.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/kernels/gemm_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/kernels/gemm_tile-inl.h"

// Once for all targets.
#ifndef NUMSIM_KERNELS_GEMM_SIMD_SERIAL_
#define NUMSIM_KERNELS_GEMM_SIMD_SERIAL_
namespace numsim {
template <typename T>
void StoreScaledSerial(const T* sums, size_t begin, size_t end, const RowScale& scale, float* out) {
  for (size_t c = begin; c < end; ++c) {
    const double factor = scale.a * static_cast<double>(scale.b[c]);
    float x = static_cast<float>(static_cast<double>(sums[c]) * factor);
    if (scale.add) x += out[c];
    out[c] = x == x ? x : scale.nan;
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
                         T* HWY_RESTRICT acc) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sum[kRows][kVectors];
  NUMSIM_UNROLL for (size_t r = 0; r < kRows; ++r) {
    NUMSIM_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      sum[r][v] = hn::LoadU(d, acc + (r * kVectors + v) * lanes);
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

void Multiply32(const float* a, const float* b, size_t depth, float* acc) {
  Multiply(a, b, depth, acc);
}

void Multiply64(const double* a, const double* b, size_t depth, double* acc) {
#if HWY_HAVE_FLOAT64
  Multiply(a, b, depth, acc);
#endif
}

// Four rows at a time: a 4 x 4 transpose of words.
void Interleave(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out) {
  size_t v = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<uint32_t, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> dd;
  const auto load = [d](const uint8_t* from)
                        HWY_ATTR { return hn::LoadU(d, reinterpret_cast<const uint32_t*>(from)); };
  for (; v + 4 <= width; v += 4) {
    size_t k = 0;
    for (; k + 4 <= n; k += 4) {
      const auto r0 = load(rows[v] + 4 * k);
      const auto r1 = load(rows[v + 1] + 4 * k);
      const auto r2 = load(rows[v + 2] + 4 * k);
      const auto r3 = load(rows[v + 3] + 4 * k);
      const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
      uint32_t* to = out + k * width + v;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)), d, to + width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)), d, to + 2 * width);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)), d, to + 3 * width);
    }
    for (; k < n; ++k) {
      for (size_t i = v; i < v + 4; ++i) std::memcpy(out + k * width + i, rows[i] + 4 * k, 4);
    }
  }
#endif
  for (; v < width; ++v) {
    for (size_t k = 0; k < n; ++k) std::memcpy(out + k * width + v, rows[v] + 4 * k, 4);
  }
}

template <typename T>
void StoreScaled(const T* HWY_RESTRICT sums,
                 size_t n,
                 const RowScale& scale,
                 float* HWY_RESTRICT out) {
  size_t c = 0;
#if HWY_HAVE_FLOAT64
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<T, decltype(d)> dt;
  const size_t lanes = hn::Lanes(d);
  const auto scale_a = hn::Set(d, scale.a);
  const auto nan = hn::Set(df, scale.nan);
  for (; c + lanes <= n; c += lanes) {
    hn::Vec<decltype(d)> sum;
    if constexpr (sizeof(T) == 8) {
      sum = hn::LoadU(dt, sums + c);
    } else {
      sum = hn::PromoteTo(d, hn::LoadU(dt, sums + c));
    }
    const auto factor = hn::Mul(scale_a, hn::PromoteTo(d, hn::LoadU(df, scale.b + c)));
    auto x = ToFloat32(df, hn::Mul(sum, factor));
    if (scale.add) x = hn::Add(hn::LoadU(df, out + c), x);
    hn::StoreU(hn::IfThenElse(hn::Eq(x, x), x, nan), df, out + c);
  }
#endif
  StoreScaledSerial(sums, c, n, scale, out);
}

void StoreInt32(const int32_t* sums, size_t n, const RowScale& scale, float* out) {
  StoreScaled(sums, n, scale, out);
}
void StoreFloat32(const float* sums, size_t n, const RowScale& scale, float* out) {
  StoreScaled(sums, n, scale, out);
}
void StoreFloat64(const double* sums, size_t n, const RowScale& scale, float* out) {
  StoreScaled(sums, n, scale, out);
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
HWY_EXPORT(Interleave);
HWY_EXPORT(StoreInt32);
HWY_EXPORT(StoreFloat32);
HWY_EXPORT(StoreFloat64);

TileShape Float32Tile() { return HWY_DYNAMIC_DISPATCH(Shape32)(); }
TileShape Float64Tile() { return HWY_DYNAMIC_DISPATCH(Shape64)(); }
bool TileIsFused() { return HWY_DYNAMIC_DISPATCH(Fused)(); }

void MultiplyTile(const float* a, const float* b, size_t depth, float* acc) {
  HWY_DYNAMIC_DISPATCH(Multiply32)(a, b, depth, acc);
}

void MultiplyTile(const double* a, const double* b, size_t depth, double* acc) {
  HWY_DYNAMIC_DISPATCH(Multiply64)(a, b, depth, acc);
}

void InterleaveRows(const uint8_t* const* rows, size_t width, size_t n, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(Interleave)(rows, width, n, out);
}

void StoreScaledRow(const int32_t* sums, size_t n, const RowScale& scale, float* out) {
  if (UsesScalarReference()) return StoreScaledSerial(sums, 0, n, scale, out);
  HWY_DYNAMIC_DISPATCH(StoreInt32)(sums, n, scale, out);
}

void StoreScaledRow(const float* sums, size_t n, const RowScale& scale, float* out) {
  if (UsesScalarReference()) return StoreScaledSerial(sums, 0, n, scale, out);
  HWY_DYNAMIC_DISPATCH(StoreFloat32)(sums, n, scale, out);
}

void StoreScaledRow(const double* sums, size_t n, const RowScale& scale, float* out) {
  if (UsesScalarReference()) return StoreScaledSerial(sums, 0, n, scale, out);
  HWY_DYNAMIC_DISPATCH(StoreFloat64)(sums, n, scale, out);
}

}  // namespace numsim
#endif  // HWY_ONCE
