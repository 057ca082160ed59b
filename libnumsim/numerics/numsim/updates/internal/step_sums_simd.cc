#include "numsim/updates/internal/step_sums_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/updates/internal/step_sums_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Arrays of vectors need a length that is known at compile time.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

using StepDoubles = hn::CappedTag<double, kPartialSums>;
using StepFloats = hn::Rebind<float, StepDoubles>;
using StepMagnitudes = hn::Rebind<int32_t, StepDoubles>;
constexpr size_t kStepLanes = hn::MaxLanes(StepDoubles());
constexpr size_t kStepVectors = kPartialSums / kStepLanes;

HWY_INLINE hn::Vec<StepDoubles> Widen(const float* x) {
  return hn::PromoteTo(StepDoubles(), hn::LoadU(StepFloats(), x));
}

// Eight partial sums in vectors. Products are rounded before they are added, as in step_sums.cc.
struct PartialSums {
  hn::Vec<StepDoubles> sums[kStepVectors];

  HWY_INLINE explicit PartialSums(const double* from) {
    for (size_t v = 0; v < kStepVectors; ++v) {
      sums[v] = hn::LoadU(StepDoubles(), from + v * kStepLanes);
    }
  }
  HWY_INLINE void Add(size_t v, hn::Vec<StepDoubles> a, hn::Vec<StepDoubles> b) {
    sums[v] = hn::Add(sums[v], hn::Mul(a, b));
  }
  HWY_INLINE void Store(double* to) const {
    for (size_t v = 0; v < kStepVectors; ++v) {
      hn::StoreU(sums[v], StepDoubles(), to + v * kStepLanes);
    }
  }
};

size_t AddSquares(const float* x, size_t n, double* squares) {
  PartialSums square(squares);
  size_t i = 0;
  for (; i + kPartialSums <= n; i += kPartialSums) {
    for (size_t v = 0; v < kStepVectors; ++v) {
      const auto value = Widen(x + i + v * kStepLanes);
      square.Add(v, value, value);
    }
  }
  square.Store(squares);
  return i;
}

size_t AddStep(const float* before,
               const float* after,
               const float* update,
               size_t n,
               double* squares,
               double* projections,
               uint64_t& moved_ref) {
  const StepDoubles dd;
  PartialSums square(squares), projection(projections);
  uint64_t moved = moved_ref;
  size_t i = 0;
  for (; i + kPartialSums <= n; i += kPartialSums) {
    for (size_t v = 0; v < kStepVectors; ++v) {
      const size_t at = i + v * kStepLanes;
      const auto from = Widen(before + at), to = Widen(after + at);
      const auto d = hn::Sub(to, from);
      square.Add(v, d, d);
      projection.Add(v, d, Widen(update + at));
      moved += kStepLanes - hn::CountTrue(dd, hn::Eq(to, from));
    }
  }
  square.Store(squares);
  projection.Store(projections);
  moved_ref = moved;
  return i;
}

// Raises `most` to the magnitudes of x.
HWY_INLINE void Raise(hn::Vec<StepMagnitudes>& most, const float* x) {
  const StepMagnitudes di;
  const auto bits = hn::LoadU(di, reinterpret_cast<const int32_t*>(x));
  most = hn::Max(most, hn::And(bits, hn::Set(di, 0x7FFFFFFF)));
}

size_t AddScan(const float* weights,
               const float* update,
               size_t n,
               double* squares,
               uint32_t& weights_ref,
               uint32_t& update_ref) {
  // In elements. The processor's own prefetch stops at every page.
  constexpr size_t kAhead = 1024;
  const StepMagnitudes di;
  PartialSums square(squares);
  auto most_weight = hn::Set(di, static_cast<int32_t>(weights_ref));
  auto most_update = hn::Set(di, static_cast<int32_t>(update_ref));
  size_t i = 0;
  for (; i + kPartialSums <= n; i += kPartialSums) {
    hwy::Prefetch(weights + i + kAhead);
    hwy::Prefetch(update + i + kAhead);
    for (size_t v = 0; v < kStepVectors; ++v) {
      const size_t at = i + v * kStepLanes;
      Raise(most_weight, weights + at);
      Raise(most_update, update + at);
      const auto value = Widen(update + at);
      square.Add(v, value, value);
    }
  }
  square.Store(squares);
  weights_ref = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most_weight)));
  update_ref = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most_update)));
  return i;
}

#else
size_t AddSquares(const float*, size_t, double*) { return 0; }
size_t AddScan(const float*, const float*, size_t, double*, uint32_t&, uint32_t&) { return 0; }
size_t AddStep(const float*, const float*, const float*, size_t, double*, double*, uint64_t&) {
  return 0;
}
#endif

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(AddSquares);
HWY_EXPORT(AddScan);
HWY_EXPORT(AddStep);

size_t AddSquaresSimd(const float* x, size_t n, double* squares) noexcept {
  return HWY_DYNAMIC_DISPATCH(AddSquares)(x, n, squares);
}

size_t AddScanSimd(const float* weights,
                   const float* update,
                   size_t n,
                   double* squares,
                   uint32_t& most_weight,
                   uint32_t& most_update) noexcept {
  return HWY_DYNAMIC_DISPATCH(AddScan)(weights, update, n, squares, most_weight, most_update);
}

size_t AddStepSimd(const float* before,
                   const float* after,
                   const float* update,
                   size_t n,
                   double* squares,
                   double* projections,
                   uint64_t& moved) noexcept {
  return HWY_DYNAMIC_DISPATCH(AddStep)(before, after, update, n, squares, projections, moved);
}

}  // namespace numsim
#endif  // HWY_ONCE
