#include "numsim/base/shared/elementary_text.h"
#include "numsim/ops/internal/ops_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/ops/internal/loss_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
#define NUMSIM_RULE HWY_INLINE
#define NUMSIM_BODY HWY_ATTR
#include "numsim/ops/internal/loss_rule.inc"
#undef NUMSIM_BODY
#undef NUMSIM_RULE

RowLoss CrossEntropyRow(const float* x, size_t n, size_t target, float weight, float* gradient) {
  return CrossEntropyLanes(RowLanes(), x, n, target, weight, gradient);
}

float SquaredErrorRow(
    const float* y, const float* target, size_t n, float weight, float* gradient) {
  return SquaredErrorLanes(RowLanes(), y, target, n, weight, gradient);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(CrossEntropyRow);
HWY_EXPORT(SquaredErrorRow);

RowLoss CrossEntropyOfRow(
    const float* x, size_t n, size_t target, float weight, float* gradient) noexcept {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyRow)(x, n, target, weight, gradient);
}

float SquaredErrorOfRow(
    const float* y, const float* target, size_t n, float weight, float* gradient) noexcept {
  return HWY_DYNAMIC_DISPATCH(SquaredErrorRow)(y, target, n, weight, gradient);
}

}  // namespace numsim
#endif  // HWY_ONCE
