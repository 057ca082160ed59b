#include "numsim/moments/internal/moment_coat_simd.h"

#include <algorithm>
#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/moments/internal/moment_coat_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;

// Computes the bits of the largest finite magnitude, and the minimum over all magnitudes of their
// bits minus one. Magnitudes and their bits have the same order, and subtracting one wraps zero to
// the largest value, so that zeros do not affect the minimum.
void FindBitRange(const float* in, size_t n, uint32_t* most_bits, uint32_t* least_less_one) {
  const hn::ScalableTag<uint32_t> du;
  const hn::Repartition<float, decltype(du)> df;
  const size_t lanes = hn::Lanes(du);
  const auto one = hn::Set(du, 1u), magnitude = hn::Set(du, kMagnitude);
  const auto infinity = hn::Set(du, kInfinity);
  auto most = hn::Zero(du), least = hn::Set(du, 0xFFFFFFFFu);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::And(hn::BitCast(du, hn::LoadU(df, in + i)), magnitude);
    most = hn::Max(most, hn::IfThenElseZero(hn::Lt(bits, infinity), bits));
    least = hn::Min(least, hn::Sub(bits, one));
  }
  HWY_ALIGN uint32_t mosts[HWY_MAX_BYTES / sizeof(uint32_t)];
  HWY_ALIGN uint32_t leasts[HWY_MAX_BYTES / sizeof(uint32_t)];
  hn::Store(most, du, mosts);
  hn::Store(least, du, leasts);
  uint32_t most_found = 0, least_found = 0xFFFFFFFFu;
  for (size_t lane = 0; lane < lanes; ++lane) {
    most_found = std::max(most_found, mosts[lane]);
    least_found = std::min(least_found, leasts[lane]);
  }
  for (; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]) & kMagnitude;
    if (bits < kInfinity) most_found = std::max(most_found, bits);
    least_found = std::min(least_found, bits - 1);
  }
  *most_bits = most_found;
  *least_less_one = least_found;
}

// Returns the scaled power of each lane. Requires x >= 0.
template <class D, class V>
HWY_INLINE V PowerLanes(D d, const ScaledPower& to, V x) {
  V base = hn::Div(x, hn::Set(d, to.divisor));
  for (int root = 0; root < to.roots; ++root) base = hn::Sqrt(base);
  V product = hn::Set(d, to.factor);
  for (uint32_t power = to.power;; base = hn::Mul(base, base)) {
    if (power % 2 != 0) product = hn::Mul(product, base);
    power /= 2;
    if (power == 0) return product;
  }
}

void RaiseAll(const ScaledPower& to, const float* in, size_t n, float* out) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const hn::CappedTag<double, 1> dd1;
  const hn::Rebind<float, decltype(dd1)> df1;
  const size_t lanes = hn::Lanes(dd);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(df, in + i);
    const auto y = PowerLanes(dd, to, hn::PromoteTo(dd, hn::Abs(x)));
    hn::StoreU(hn::CopySign(hn::DemoteTo(df, y), x), df, out + i);
  }
  for (; i < n; ++i) {
    const auto x = hn::LoadU(df1, in + i);
    const auto y = PowerLanes(dd1, to, hn::PromoteTo(dd1, hn::Abs(x)));
    hn::StoreU(hn::CopySign(hn::DemoteTo(df1, y), x), df1, out + i);
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(FindBitRange);
HWY_EXPORT(RaiseAll);

MagnitudeRange FiniteMagnitudes(const float* in, size_t n) {
  uint32_t most = 0, least_less_one = 0;
  HWY_DYNAMIC_DISPATCH(FindBitRange)(in, n, &most, &least_less_one);
  if (most == 0) return {};
  return {std::bit_cast<float>(most), std::bit_cast<float>(least_less_one + 1)};
}

void Raise(const ScaledPower& to, const float* in, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(RaiseAll)(to, in, n, out);
}

}  // namespace numsim
#endif  // HWY_ONCE
