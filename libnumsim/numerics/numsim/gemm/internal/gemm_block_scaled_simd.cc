#include "numsim/gemm/internal/gemm_block_scaled_simd.h"

#include <cfenv>

// Arrays of vectors need vectors of a size known to the compiler.
#ifndef HWY_DISABLED_TARGETS  // a sanitizer build has disabled more
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/gemm/internal/gemm_block_scaled_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/gemm/internal/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_FLOAT64
// Returns E of a step: the largest of -133, the exponents of the groups and that of acc, if that is
// not zero.
template <class DI>
HWY_INLINE hn::Vec<DI> LargestExponent(
    DI di, const ScaledGroups& groups, size_t r, size_t c, size_t cols, const float* acc) {
  const auto least = hn::Set(di, -133);
  const auto bits = hn::LoadU(di, reinterpret_cast<const int32_t*>(acc));
  const auto field = hn::And(hn::ShiftRight<23>(bits), hn::Set(di, 0xFF));
  const auto of_nonzero = hn::Sub(hn::Max(field, hn::Set(di, 1)), hn::Set(di, 127));
  auto most = hn::IfThenElse(hn::Eq(bits, hn::Zero(di)), least, of_nonzero);
  for (size_t g = 0; g < groups.count; ++g) {
    const auto of_b = hn::LoadU(di, groups.exponents_b + g * cols + c);
    most = hn::Max(most, hn::Add(hn::Set(di, groups.exponents_a[g * kRows + r]), of_b));
  }
  return most;
}

void AddGroups(const ScaledGroups& groups, float* HWY_RESTRICT acc) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<int64_t, decltype(d)> dw;
  const size_t cols = kVectors * hn::Lanes(hn::ScalableTag<float>());
  const auto bias = hn::Set(dw, 1023 + groups.fraction_bits);
  const auto bias_of_unit = hn::Set(dw, 1023 - groups.fraction_bits);
  // A double keeps 52 bits of its fraction, a float32 23 of them.
  const auto kept = hn::Set(dw, static_cast<int64_t>(~uint64_t{0} << (52 - 23)));
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t c = 0; c < cols; c += hn::Lanes(d), acc += hn::Lanes(d)) {
      const auto largest = hn::PromoteTo(dw, LargestExponent(di, groups, r, c, cols, acc));
      const auto to_units = hn::BitCast(d, hn::ShiftLeft<52>(hn::Sub(bias, largest)));
      const auto unit = hn::BitCast(d, hn::ShiftLeft<52>(hn::Add(bias_of_unit, largest)));
      auto sum = hn::Trunc(hn::Mul(hn::PromoteTo(d, hn::LoadU(df, acc)), to_units));
      for (size_t g = 0; g < groups.count; ++g) {
        const auto products =
            hn::PromoteTo(d, hn::LoadU(df, groups.sums + (g * kRows + r) * cols + c));
        const auto of_a = hn::Mul(products, hn::Set(d, groups.scales_a[g * kRows + r]));
        const auto of_b = hn::Mul(to_units, hn::LoadU(d, groups.scales_b + g * cols + c));
        sum = hn::Add(sum, hn::Trunc(hn::Mul(of_a, of_b)));
      }
      const auto cut = hn::BitCast(d, hn::And(hn::BitCast(dw, sum), kept));
      // Below 2^-126 the conversion cuts, too. A zero becomes positive.
      const auto result = ToFloat32(df, hn::Mul(cut, unit));
      hn::StoreU(hn::Add(result, hn::Zero(df)), df, acc);
    }
  }
}
#else
void AddGroups(const ScaledGroups&, float*) {}
#endif

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(AddGroups);

void AddScaledGroups(const ScaledGroups& groups, float* acc) {
  const int rounding = std::fegetround();
  std::fesetround(FE_TOWARDZERO);
  HWY_DYNAMIC_DISPATCH(AddGroups)(groups, acc);
  std::fesetround(rounding);
}

}  // namespace numsim
#endif  // HWY_ONCE
