#include "numsim/kernels/quantize_simd.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "numsim/kernels/simd_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/kernels/quantize_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kInfinity = 0x7F800000u;

// Magnitudes as integers: for finite floats the order is the same. Infinity and NaN become 0.
template <class D>
HWY_INLINE hn::Vec<D> FiniteMagnitude(D d, const float* in) {
  const auto bits = hn::LoadU(d, reinterpret_cast<const int32_t*>(in));
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFF));
  return hn::IfThenElseZero(hn::Lt(magnitude, hn::Set(d, static_cast<int32_t>(kInfinity))),
                            magnitude);
}

uint32_t AbsmaxBits(const float* in, size_t n) {
  const hn::ScalableTag<int32_t> d;
  const hn::CappedTag<int32_t, 1> d1;
  const size_t lanes = hn::Lanes(d);
  auto max0 = hn::Zero(d);
  auto max1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    max0 = hn::Max(max0, FiniteMagnitude(d, in + i));
    max1 = hn::Max(max1, FiniteMagnitude(d, in + i + lanes));
  }
  int32_t result = hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
  for (; i < n; ++i) result = std::max(result, hn::GetLane(FiniteMagnitude(d1, in + i)));
  return static_cast<uint32_t>(result);
}

void AbsmaxEach(const float* HWY_RESTRICT in, size_t n, float* HWY_RESTRICT absmax) {
  const hn::ScalableTag<int32_t> d;
  const hn::CappedTag<int32_t, 1> d1;
  const size_t lanes = hn::Lanes(d);
  int32_t* bits = reinterpret_cast<int32_t*>(absmax);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Max(hn::LoadU(d, bits + i), FiniteMagnitude(d, in + i)), d, bits + i);
  }
  for (; i < n; ++i) {
    hn::StoreU(hn::Max(hn::LoadU(d1, bits + i), FiniteMagnitude(d1, in + i)), d1, bits + i);
  }
}

void MultiplyAll(const float* in, size_t n, float factor, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto factors = hn::Set(d, factor);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, in + i), factors), d, out + i);
  }
  for (; i < n; ++i) out[i] = in[i] * factor;
}

void MultiplyPairs(const float* in, size_t n, const float* factors, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, in + i), hn::LoadU(d, factors + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = in[i] * factors[i];
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {
namespace {

float FiniteMagnitudeOf(float x) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu;
  return magnitude < 0x7F800000u ? std::bit_cast<float>(magnitude) : 0.0f;
}

}  // namespace

HWY_EXPORT(AbsmaxBits);
HWY_EXPORT(AbsmaxEach);
HWY_EXPORT(MultiplyAll);
HWY_EXPORT(MultiplyPairs);

float FiniteAbsmax(const float* in, size_t n) {
  if (!UsesScalarReference()) {
    return std::bit_cast<float>(HWY_DYNAMIC_DISPATCH(AbsmaxBits)(in, n));
  }
  float result = 0;
  for (size_t i = 0; i < n; ++i) result = std::max(result, FiniteMagnitudeOf(in[i]));
  return result;
}

void AccumulateAbsmax(const float* in, size_t n, float* absmax) {
  if (!UsesScalarReference()) return HWY_DYNAMIC_DISPATCH(AbsmaxEach)(in, n, absmax);
  for (size_t i = 0; i < n; ++i) absmax[i] = std::max(absmax[i], FiniteMagnitudeOf(in[i]));
}

void Multiply(const float* in, size_t n, float factor, float* out) {
  if (!UsesScalarReference()) return HWY_DYNAMIC_DISPATCH(MultiplyAll)(in, n, factor, out);
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * factor;
}

void MultiplyEach(const float* in, size_t n, const float* factors, float* out) {
  if (!UsesScalarReference()) return HWY_DYNAMIC_DISPATCH(MultiplyPairs)(in, n, factors, out);
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * factors[i];
}

}  // namespace numsim
#endif  // HWY_ONCE
