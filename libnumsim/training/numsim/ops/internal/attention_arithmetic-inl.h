// The arithmetic of attention's kernels: its two sums of products, and the softmax of a row.
// Re-included per target.
#if defined(NUMSIM_OPS_ATTENTION_ARITHMETIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_OPS_ATTENTION_ARITHMETIC_INL_H_
#undef NUMSIM_OPS_ATTENTION_ARITHMETIC_INL_H_
#else
#define NUMSIM_OPS_ATTENTION_ARITHMETIC_INL_H_
#endif

#include <cmath>
#include <cstddef>

#include "hwy/highway.h"
#include "numsim/base/elementary.h"
#include "numsim/ops/internal/fused_rows-inl.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Mode fp32:unfused. Products are rounded before they are added, and probabilities are powers of e.
struct Unfused {
  static HWY_INLINE RowVector AddProduct(RowVector sum, RowVector a, RowVector b) {
    return hn::Add(sum, hn::Mul(a, b));
  }
  static float Factor(const HeadShape& shape) { return shape.scale; }
  static HWY_INLINE RowVector Exp(RowVector score, RowVector factor, RowVector offset) {
    return ExpRow(hn::Sub(hn::Mul(score, factor), offset));
  }
  static double Log(double x) { return numsim::Log(x); }
  static HWY_INLINE RowVector Finish(RowVector sum) { return sum; }
};

// Mode fp32, and the softmax of all others. Sums are of fused multiply-adds, and probabilities
// powers of 2. A sum may be -0, which becomes +0 when it is complete. So it makes no difference
// whether products of zeros are left out.
struct Fused {
  static HWY_INLINE RowVector AddProduct(RowVector sum, RowVector a, RowVector b) {
    return FusedMulAdd(a, b, sum);
  }
  static float Factor(const HeadShape& shape) { return shape.scale_log2; }
  static HWY_INLINE RowVector Exp(RowVector score, RowVector factor, RowVector offset) {
    return Exp2Row(FusedMulAdd(score, factor, hn::Neg(offset)));
  }
  static double Log(double x) { return numsim::Log(x) * 1.4426950408889634; }  // to base 2
  static HWY_INLINE RowVector Finish(RowVector sum) { return hn::Add(sum, hn::Zero(RowTag())); }
};

// Returns the number of tokens that token t attends to, which are [0, Seen).
HWY_INLINE size_t Seen(const HeadShape& shape, size_t t) {
  return shape.causal ? t + 1 : shape.length;
}

// Replaces a row of scores by Exp of them, with the largest of Factor * score as the offset.
// Elements beyond `seen` take no part. Returns the offset plus Log of the sum of the row, or NaN if
// that sum is not positive and finite; `sum` receives the sum.
template <class Sums>
float ExpOfScores(const HeadShape& shape, size_t seen, float* row, float* sum) {
  const RowTag d;
  auto most = hn::Set(d, -HUGE_VALF);
  ForRow(seen, [&](size_t i, size_t count) HWY_ATTR {
    auto x = LoadRow(row + i, count);
    if (count < kVectorLanes) {
      const auto within = hn::FirstN(d, count);
      x = hn::IfThenElse(within, x, hn::Set(d, -HUGE_VALF));
    }
    most = hn::Max(most, x);
  });
  // Rounding is monotonic: this is the largest of the rounded products, too.
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most)) * Sums::Factor(shape);
  const auto factor = hn::Set(d, Sums::Factor(shape)), offset = hn::Set(d, largest);
  *sum = SumRow(seen, [&](size_t i, size_t count) HWY_ATTR {
    auto x = Sums::Exp(LoadRow(row + i, count), factor, offset);
    if (count < kVectorLanes) x = hn::IfThenElseZero(hn::FirstN(d, count), x);
    StoreRow(x, row + i, count);
    return x;
  });
  const double total = *sum;
  return total > 0 && std::isfinite(total) ? static_cast<float>(largest + Sums::Log(total)) : NAN;
}

// Replaces the scores p of row t by the probabilities P, and the gradient dP in ds by the gradient
// dS of the scores. Elements that token t does not attend to take no part.
template <class Sums>
void ScoreGradients(
    const HeadShape& shape, const HeadGradientInputs& in, size_t t, float* p, float* ds) {
  const RowTag d;
  const size_t seen = Seen(shape, t);
  const float* const g = in.g.data + t * in.g.stride;
  const float* const out = in.out.data + t * in.out.stride;
  const float mean = SumRow(shape.head_dim, [&](size_t i, size_t count) HWY_ATTR {
    return hn::Mul(LoadRow(g + i, count), LoadRow(out + i, count));
  });
  const auto scale = hn::Set(d, shape.scale), factor = hn::Set(d, Sums::Factor(shape));
  const auto offset = hn::Set(d, in.log_sums[t * in.log_stride]), center = hn::Set(d, mean);
  ForRow(seen, [&](size_t i, size_t count) HWY_ATTR {
    const auto x = Sums::Exp(LoadRow(p + i, count), factor, offset);
    const auto change = hn::Mul(hn::Mul(x, hn::Sub(LoadRow(ds + i, count), center)), scale);
    StoreRow(x, p + i, count);
    StoreRow(change, ds + i, count);
  });
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NUMSIM_OPS_ATTENTION_ARITHMETIC_INL_H_
