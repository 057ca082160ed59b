#include "tests/ops/rows_simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/ops/rows_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/fused_rows-inl.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void ExpEach(const float* x, size_t n, float* y) {
  ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
    StoreRow(ExpRow(LoadRow(x + i, count)), y + i, count);
  });
}
void Exp2Each(const float* x, size_t n, float* y) {
  ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
    StoreRow(Exp2Row(LoadRow(x + i, count)), y + i, count);
  });
}
void SigmoidEach(const float* x, size_t n, float* y) {
  ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
    StoreRow(SigmoidLanes(RowLanes(), LoadRow(x + i, count)), y + i, count);
  });
}
float SumEach(const float* x, size_t n) {
  return SumRow(n, [&](size_t i, size_t count) HWY_ATTR { return LoadRow(x + i, count); });
}
float SumSuccessors(const float* x, size_t n) {
  return SumRow(n, [&](size_t i, size_t count) HWY_ATTR {
    return hn::Add(LoadRow(x + i, count), hn::Set(RowTag(), 1.0f));
  });
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(ExpEach);
HWY_EXPORT(Exp2Each);
HWY_EXPORT(SigmoidEach);
HWY_EXPORT(SumEach);
HWY_EXPORT(SumSuccessors);

void ExpOf(const float* x, size_t n, float* y) { HWY_DYNAMIC_DISPATCH(ExpEach)(x, n, y); }
void Exp2Of(const float* x, size_t n, float* y) { HWY_DYNAMIC_DISPATCH(Exp2Each)(x, n, y); }
void SigmoidOf(const float* x, size_t n, float* y) { HWY_DYNAMIC_DISPATCH(SigmoidEach)(x, n, y); }
float SumOf(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(SumEach)(x, n); }
float SumOfSuccessors(const float* x, size_t n) {
  return HWY_DYNAMIC_DISPATCH(SumSuccessors)(x, n);
}

}  // namespace numsim
#endif  // HWY_ONCE
