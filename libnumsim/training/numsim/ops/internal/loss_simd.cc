#include <limits>

#include "numsim/base/elementary.h"
#include "numsim/ops/internal/ops_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/ops/internal/loss_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns the sum of e^(x - max), and writes the terms to `terms` if that is not nullptr.
float SumOfExponentials(const float* x, size_t n, float max, float* terms) {
  const RowTag d;
  const auto shift = hn::Set(d, max);
  return SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
    const auto term = ExpRow(hn::Sub(LoadRow(x + i, count), shift));
    if (terms != nullptr) StoreRow(term, terms + i, count);
    return term;
  });
}

RowLoss CrossEntropyRow(const float* x, size_t n, size_t target, float weight, float* gradient) {
  const RowTag d;
  const float max = MaxOfRow(x, n), score = x[target];
  const bool correct = score == max && std::find(x, x + target, max) == x + target;
  const float sum = SumOfExponentials(x, n, max, gradient);
  if (!(sum > 0)) {  // NaN, with the same bits on every SIMD target
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (gradient != nullptr) std::fill_n(gradient, n, kNan);
    return {.loss = kNan, .correct = false};
  }
  if (gradient != nullptr) {
    const auto factor = hn::Set(d, weight / sum);
    ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
      StoreRow(hn::Mul(LoadRow(gradient + i, count), factor), gradient + i, count);
    });
    gradient[target] -= weight;
  }
  return {.loss = Log(sum) + (double{max} - double{score}), .correct = correct};
}

float SquaredErrorRow(
    const float* y, const float* target, size_t n, float weight, float* gradient) {
  const auto factor = hn::Set(RowTag(), weight);
  return SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
    const auto error = hn::Sub(LoadRow(y + i, count), LoadRow(target + i, count));
    if (gradient != nullptr) StoreRow(hn::Mul(error, factor), gradient + i, count);
    return hn::Mul(error, error);
  });
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
