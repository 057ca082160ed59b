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
// With AMX for bf16, E comes from a sum of powers: of the 32 products of a chunk, sum 2^(8 e) is
// below 2^(8 E + 6), so its exponent tells E, however it was rounded.
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
#include "numsim/gemm/internal/gemm_aligned_fields-inl.h"
#include "numsim/gemm/internal/gemm_aligned_pack-inl.h"
#include "numsim/gemm/internal/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

void FillAligned(const AlignedSums& sums,
                 bool is_a,
                 const AlignedGrid& grid,
                 const float* values,
                 size_t depth,
                 uint8_t* panel) {
  if (AreOfFloat64(sums.lanes)) {
#if HWY_HAVE_FLOAT64
    return FillPanelOf<double>(sums, is_a, grid, values, depth, panel);
#endif
  }
  FillPanelOf<float>(sums, is_a, grid, values, depth, panel);
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
// Fused lanes of double: with fields of two bytes any exponents of float32 values, with those of a byte
// exponents in the window.
template <typename FieldOfLanes>
struct FusedDouble {
  using T = double;
  using Field = FieldOfLanes;
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
    constexpr int kShift = 32 - 8 * sizeof(Field);
    return hn::Max(hn::ShiftRight<kShift>(hn::LoadU(di, largest)), of_acc);
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
    for (size_t i = 0; i < cols; i += 64 / sizeof(T)) hwy::Prefetch(b + chunk.depth * cols + i);
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

// Returns the words of an array of a panel for a chunk.
HWY_INLINE const uint32_t* WordsOf(const uint8_t* panel,
                                   const AlignedWords& array,
                                   size_t chunk,
                                   size_t width) {
  return reinterpret_cast<const uint32_t*>(panel + array.at) + chunk * array.words * width;
}

// Computes acc(r, c) *= a[r] b[c] for `cols` columns, a multiple of half the lanes.
HWY_INLINE void ScaleSums(const float* HWY_RESTRICT a,
                          const float* HWY_RESTRICT b,
                          size_t cols,
                          float* HWY_RESTRICT acc) {
  const hn::CappedTag<float, HWY_MAX_BYTES / sizeof(double)> d;
  for (size_t r = 0; r < kRows; ++r) {
    const auto of_row = hn::Set(d, a[r]);
    for (size_t c = 0; c < cols; c += hn::Lanes(d), acc += hn::Lanes(d)) {
      const auto factor = hn::Mul(of_row, hn::LoadU(d, b + c));
      hn::StoreU(hn::Mul(hn::LoadU(d, acc), factor), d, acc);
    }
  }
}

template <class L, bool kTiles = false, typename T = typename L::T>
HWY_INLINE void AlignedTile(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  using Field = typename L::Field;
  const size_t cols = kVectors * hn::Lanes(typename L::D());
  const size_t chunk = static_cast<size_t>(sums.chunk);
  const AlignedLayout of_a(sums, kRows, run.panel_depth), of_b(sums, cols, run.panel_depth);
  constexpr size_t kSums = kRows * kVectors * HWY_MAX_BYTES / sizeof(T);
  HWY_ALIGN int32_t largest[kSums];
  HWY_ALIGN int32_t powers[kTiles ? kSums : 1];
  // AMX works on the powers of the next chunk while this one is added.
  const auto add_powers = [&](size_t i) HWY_ATTR {
    if (!kTiles) return;
    AddAmxPowers(
        WordsOf(run.a, of_a.exponents, i, kRows), WordsOf(run.b, of_b.exponents, i, cols), powers);
  };
  size_t i = run.begin / chunk;
  add_powers(i);
  for (size_t k = run.begin; k < run.end; k += chunk, ++i) {
    const Chunk<T> part{reinterpret_cast<const T*>(run.a) + k * kRows,
                        reinterpret_cast<const T*>(run.b) + k * cols,
                        HWY_MIN(chunk, run.end - k)};
    const bool scaled = run.scales_a != nullptr;
    if (scaled) ScaleSums(run.scales_a + 2 * i * kRows, run.scales_b + 2 * i * cols, cols, acc);
    if (kTiles) {
      LargestFromPowers(sums, powers, kRows * cols, largest);
      if (k + chunk < run.end) add_powers(i + 1);
    } else {
      LargestExponents<Field, L::kWords>(WordsOf(run.a, of_a.exponents, i, kRows),
                                         WordsOf(run.b, of_b.exponents, i, cols),
                                         of_a.exponents.words,
                                         cols,
                                         largest);
    }
    if constexpr (std::is_same_v<L, IntegerFloat>) {
      constexpr size_t kGroup = kRows / 2;  // rows whose sums fit the registers
      AddIntegers<kGroup>(sums, part, largest, 0, acc);
      AddIntegers<kGroup>(sums, part, largest, kGroup, acc);
    } else {
      HWY_ALIGN T starts[kSums];
      for (size_t r = 0; r < kRows; ++r) {
        L::Start(sums, acc + r * cols, largest + r * cols, starts + r * cols);
      }
      CountInexact<Field, L::kWords>(WordsOf(run.a, of_a.lowest_bits, i, kRows),
                                     WordsOf(run.b, of_b.lowest_bits, i, cols),
                                     of_a.lowest_bits.words,
                                     cols,
                                     largest);
      AddFused<L>(sums, part, starts, largest, acc);
    }
    if (scaled) {
      ScaleSums(run.scales_a + (2 * i + 1) * kRows, run.scales_b + (2 * i + 1) * cols, cols, acc);
    }
  }
}

void MultiplyAligned(const AlignedSums& sums, const AlignedRun& run, float* acc) {
  switch (sums.lanes) {
    case AlignedLanes::kFloat:
      return AlignedTile<FusedFloat>(sums, run, acc);
    case AlignedLanes::kFloatTiles:
#if HWY_TARGET == HWY_AVX3
      static_assert(kRows == kAmxPowersTile.rows);
      return AlignedTile<FusedFloat, true>(sums, run, acc);
#else
      return;
#endif
    case AlignedLanes::kInteger:
      return AlignedTile<IntegerFloat>(sums, run, acc);
    case AlignedLanes::kDoubleBytes:
#if HWY_HAVE_FLOAT64
      return AlignedTile<FusedDouble<int8_t>>(sums, run, acc);
#else
      return;
#endif
    case AlignedLanes::kDouble:
#if HWY_HAVE_FLOAT64
      return AlignedTile<FusedDouble<int16_t>>(sums, run, acc);
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
double LargestSum(const AccumulationMode& mode, double largest_product) {
  return std::ldexp(largest_product * mode.chunk + 2, mode.fraction_bits) + mode.chunk;
}

// Returns the largest |a b|, (2 - 2^(1-bits_a)) (2 - 2^(1-bits_b)), in units of 2^E.
double LargestProduct(int bits_a, int bits_b) {
  return (2 - std::ldexp(1, 1 - bits_a)) * (2 - std::ldexp(1, 1 - bits_b));
}

// Returns true if the places of lowest bits fit a field, and all products of a chunk can be counted.
template <typename Field>
bool FieldsHold(const AccumulationMode& mode, int places) {
  constexpr int kMostCounted = sizeof(Field) == 1 ? 4 * 0xFF : 0xFFFF;  // of SumOfFields
  return places < kNoLowestBit<Field> && mode.chunk <= kMostCounted;
}

// Returns true if the powers of both operands and their sums fit the exponents of bf16 and float32.
bool PowersHold(const AccumulationMode& mode, int exponents_a, int exponents_b) {
  constexpr int kLargest = 254, kCarry = 5;  // a sum of 32 powers is at most 2^5 times the largest
  return static_cast<size_t>(mode.chunk) <= kAmxPowers &&
         kPowerOffsetA + 8 * exponents_a <= kLargest &&
         kPowerOffsetB + 8 * exponents_b <= kLargest &&
         kPowerOffsetA + kPowerOffsetB - 127 + 8 * (exponents_a + exponents_b) + kCarry <= kLargest;
}

}  // namespace

std::optional<AlignedLanes> DoubleLanesForAligned(const AccumulationMode& mode,
                                                  const AlignedFactor& a,
                                                  const AlignedFactor& b) {
  const int places = a.places + b.places;
  const bool sums_fit = LargestSum(mode, LargestProduct(a.bits, b.bits)) < 0x1p51;
  if (a.bits + b.bits > 48 || !sums_fit || Float64Tile().rows == 0) return std::nullopt;
  if (a.in_window && b.in_window && FieldsHold<int8_t>(mode, places)) {
    return AlignedLanes::kDoubleBytes;
  }
  if (FieldsHold<int16_t>(mode, places)) return AlignedLanes::kDouble;
  return std::nullopt;
}

std::optional<AlignedLanes> LanesForAligned(const AccumulationMode& mode,
                                            const AlignedFactor& a,
                                            const AlignedFactor& b) {
  const int bits = a.bits + b.bits, places = a.places + b.places;
  const double product = LargestProduct(a.bits, b.bits);
  const double sum = LargestSum(mode, product);
  if (a.in_window && b.in_window && bits <= 24) {
    if (sum < 0x1p22 && FieldsHold<int8_t>(mode, places)) {
      const bool tiles = HasAmxPowers() && PowersHold(mode, a.exponents, b.exponents);
      return tiles ? AlignedLanes::kFloatTiles : AlignedLanes::kFloat;
    }
    // The accumulator is added apart, in float64.
    const double products = std::ldexp(product * mode.chunk, mode.fraction_bits);
    if (mode.fraction_bits <= 25 && products < 0x1p31) return AlignedLanes::kInteger;
  }
  return DoubleLanesForAligned(mode, a, b);
}

}  // namespace numsim
#endif  // HWY_ONCE
