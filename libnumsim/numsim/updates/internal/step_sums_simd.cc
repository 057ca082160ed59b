#include "numsim/updates/internal/step_sums_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/updates/internal/step_sums_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Arrays of vectors need a length that is known at compile time.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

using StepDoubles = hn::CappedTag<double, kPartialSums>;
using StepFloats = hn::Rebind<float, StepDoubles>;
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

#else
size_t AddSquares(const float*, size_t, double*) { return 0; }
size_t AddStep(const float*, const float*, const float*, size_t, double*, double*, uint64_t&) {
  return 0;
}
#endif

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(AddSquares);
HWY_EXPORT(AddStep);

size_t AddSquaresSimd(const float* x, size_t n, double* squares) noexcept {
  return HWY_DYNAMIC_DISPATCH(AddSquares)(x, n, squares);
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
