#include "numsim/quantize/shared/quantize_simd.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "numsim/backend/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/quantize/shared/quantize_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr uint32_t kInfinity = 0x7F800000u;
// The longest runs whose maxima are found side by side. In longer ones, combining the lanes takes little
// time.
constexpr size_t kMostOfShortRun = 128;

// Loads magnitudes as integers. Their order is that of the floats, followed by infinity and NaN.
template <class D>
HWY_INLINE hn::Vec<D> AnyMagnitude(D d, const float* in) {
  const auto bits = hn::LoadU(d, reinterpret_cast<const int32_t*>(in));
  return hn::And(bits, hn::Set(d, 0x7FFFFFFF));
}

// Loads magnitudes as integers, with 0 in place of infinity and NaN.
template <class D>
HWY_INLINE hn::Vec<D> FiniteMagnitude(D d, const float* in) {
  const auto magnitude = AnyMagnitude(d, in);
  return hn::IfThenElseZero(hn::Lt(magnitude, hn::Set(d, static_cast<int32_t>(kInfinity))),
                            magnitude);
}

template <bool kFinite, class D>
HWY_INLINE hn::Vec<D> Magnitude(D d, const float* in) {
  if constexpr (kFinite) return FiniteMagnitude(d, in);
  return AnyMagnitude(d, in);
}

template <bool kFinite>
uint32_t LargestMagnitude(const float* in, size_t n) {
  const hn::ScalableTag<int32_t> d;
  const hn::CappedTag<int32_t, 1> d1;
  const size_t lanes = hn::Lanes(d);
  auto max0 = hn::Zero(d);
  auto max1 = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    max0 = hn::Max(max0, Magnitude<kFinite>(d, in + i));
    max1 = hn::Max(max1, Magnitude<kFinite>(d, in + i + lanes));
  }
  int32_t result = hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
  for (; i < n; ++i) result = std::max(result, hn::GetLane(Magnitude<kFinite>(d1, in + i)));
  return static_cast<uint32_t>(result);
}
uint32_t FiniteAbsmaxBits(const float* in, size_t n) { return LargestMagnitude<true>(in, n); }
uint32_t AbsmaxBits(const float* in, size_t n) { return LargestMagnitude<false>(in, n); }

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

#if HWY_TARGET == HWY_SCALAR
size_t AbsmaxWholeRuns(const float*, size_t, size_t, float*) { return 0; }
#else
// Returns the vector of the largest finite magnitudes of kCount runs of `block` elements, each kCount lanes
// or a multiple of them: half of the runs in the lower half of the lanes, and so on. kCount = 1: returns
// the maxima of the lanes.
template <size_t kCount, class D>
HWY_INLINE hn::Vec<D> RunMaxima(D d, const float* in, size_t block) {
  if constexpr (kCount == 1) {
    const size_t lanes = hn::Lanes(d);
    auto most = FiniteMagnitude(d, in);
    for (size_t i = lanes; i < block; i += lanes) most = hn::Max(most, FiniteMagnitude(d, in + i));
    return most;
  } else {
    const auto lower = RunMaxima<kCount / 2>(d, in, block);
    const auto upper = RunMaxima<kCount / 2>(d, in + kCount / 2 * block, block);
    // Neighbours become one: the lanes of `lower` fill the lower half.
    return hn::Max(hn::ConcatEven(d, upper, lower), hn::ConcatOdd(d, upper, lower));
  }
}

// Raises absmax to the largest finite magnitude of each run of `block` elements, for as many runs at a time
// as a vector has lanes, and returns the number of runs.
size_t AbsmaxWholeRuns(const float* in, size_t n, size_t block, float* absmax) {
  constexpr size_t kLanes = std::min<size_t>(HWY_MAX_BYTES / sizeof(int32_t), 16);
  const hn::CappedTag<int32_t, kLanes> d;
  if (block % kLanes != 0) return 0;
  int32_t* const bits = reinterpret_cast<int32_t*>(absmax);
  size_t run = 0;
  for (; (run + kLanes) * block <= n; run += kLanes) {
    const auto most = RunMaxima<kLanes>(d, in + run * block, block);
    hn::StoreU(hn::Max(hn::LoadU(d, bits + run), most), d, bits + run);
  }
  return run;
}
#endif

// Raises absmax to the largest finite magnitude of each run of `block` elements.
void AbsmaxRuns(const float* in, size_t n, size_t block, float* absmax) {
  if (block == 1) return AbsmaxEach(in, n, absmax);
  const size_t runs = block <= kMostOfShortRun ? AbsmaxWholeRuns(in, n, block, absmax) : 0;
  absmax += runs;
  for (size_t i = runs * block; i < n; i += block, ++absmax) {
    const uint32_t max = LargestMagnitude<true>(in + i, std::min(block, n - i));
    *absmax = std::max(*absmax, std::bit_cast<float>(max));
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

// Stores whole vectors. The next run overwrites the elements written beyond a run.
void SpreadRuns(const float* factors, size_t first, size_t block, size_t n, float* out) {
  const hn::CappedTag<float, kSpreadPadding> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0, run = std::min(first, n); i < n; i += run, run = std::min(block, n - i)) {
    const auto factor = hn::Set(d, *factors++);
    for (size_t j = 0; j < run; j += lanes) hn::StoreU(factor, d, out + i + j);
  }
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

HWY_EXPORT(FiniteAbsmaxBits);
HWY_EXPORT(AbsmaxBits);
HWY_EXPORT(AbsmaxRuns);
HWY_EXPORT(MultiplyAll);
HWY_EXPORT(MultiplyPairs);
HWY_EXPORT(SpreadRuns);

float FiniteAbsmax(const float* in, size_t n) {
  if (!UsesScalarReference()) {
    return std::bit_cast<float>(HWY_DYNAMIC_DISPATCH(FiniteAbsmaxBits)(in, n));
  }
  float result = 0;
  for (size_t i = 0; i < n; ++i) result = std::max(result, FiniteMagnitudeOf(in[i]));
  return result;
}

float AbsmaxOfAll(const float* in, size_t n) {
  uint32_t result = 0;
  if (!UsesScalarReference()) {
    result = HWY_DYNAMIC_DISPATCH(AbsmaxBits)(in, n);
  } else {
    for (size_t i = 0; i < n; ++i) {
      result = std::max(result, std::bit_cast<uint32_t>(in[i]) & 0x7FFFFFFFu);
    }
  }
  return result > 0x7F800000u ? std::numeric_limits<float>::quiet_NaN()
                              : std::bit_cast<float>(result);
}

void AccumulateAbsmax(const float* in, size_t n, size_t block, float* absmax) {
  if (!UsesScalarReference()) return HWY_DYNAMIC_DISPATCH(AbsmaxRuns)(in, n, block, absmax);
  for (size_t i = 0; i < n; ++i) {
    absmax[i / block] = std::max(absmax[i / block], FiniteMagnitudeOf(in[i]));
  }
}

void Multiply(const float* in, size_t n, float factor, float* out) {
  if (!UsesScalarReference()) return HWY_DYNAMIC_DISPATCH(MultiplyAll)(in, n, factor, out);
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * factor;
}

void MultiplyEach(const float* in, size_t n, const float* factors, float* out) {
  if (!UsesScalarReference()) return HWY_DYNAMIC_DISPATCH(MultiplyPairs)(in, n, factors, out);
  for (size_t i = 0; i < n; ++i) out[i] = in[i] * factors[i];
}

void Spread(const float* factors, size_t first, size_t block, size_t n, float* out) {
  if (!UsesScalarReference()) {
    return HWY_DYNAMIC_DISPATCH(SpreadRuns)(factors, first, block, n, out);
  }
  for (size_t i = 0; i < n; ++i) out[i] = factors[i < first ? 0 : (i - first) / block + 1];
}

}  // namespace numsim
#endif  // HWY_ONCE
