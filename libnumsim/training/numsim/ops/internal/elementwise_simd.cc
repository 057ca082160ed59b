#include <limits>

#include "numsim/ops/internal/ops_simd.h"

// Arrays of vectors require a vector size known at compile time, which these targets lack.
#ifndef HWY_DISABLED_TARGETS  // predefined in sanitizer builds, which disable more targets
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/ops/internal/elementwise_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Matrix = MatrixSpan<float>;
using Input = MatrixSpan<const float>;

#define NUMSIM_RULE HWY_INLINE
#define NUMSIM_BODY HWY_ATTR
#include "numsim/ops/internal/elementwise_rule.inc"
#undef NUMSIM_BODY
#undef NUMSIM_RULE

template <class Rule>
HWY_INLINE void ForAllRows(Matrix y, const Rule& rule) {
  for (size_t r = 0; r < y.rows; ++r) rule(RowLanes(), r, 0, y.cols);
}

void AddRows(Input a, Input b, Matrix y) { ForAllRows(y, AddRule{a, b, y}); }

void ScaleRows(float factor, Matrix y) { ForAllRows(y, ScaleRule{factor, y}); }

void AddBiasToRows(Input bias, Matrix y) { ForAllRows(y, AddBiasRule{bias.data, y}); }

void RotateRows(RotatedRows of, size_t begin, size_t end) {
  const RotateRule rule{of.cosines, of.sines, of.cosines.rows, of.head_dim, of.sign, of.x};
  for (size_t r = begin; r < end; ++r) {
    for (size_t v = 0; v < of.x.cols / of.head_dim; ++v) rule(RowLanes(), r, v);
  }
}

// ColumnRule, but loads and stores the sums once per four rows.
void AddColumns(Input x, float* sums) {
  const RowLanes l;
  size_t r = 0;
  for (; r + 4 <= x.rows; r += 4) {
    const float* const row = x.Row(r);
    l.ForRow(x.cols, [&](size_t i, size_t count) HWY_ATTR {
      auto sum = l.Load(sums + i, count);
      sum = l.Add(sum, l.Load(row + i, count));
      sum = l.Add(sum, l.Load(row + x.stride + i, count));
      sum = l.Add(sum, l.Load(row + 2 * x.stride + i, count));
      sum = l.Add(sum, l.Load(row + 3 * x.stride + i, count));
      l.Store(sum, sums + i, count);
    });
  }
  for (; r < x.rows; ++r) ColumnRule{x}(l, r, 0, x.cols, MemorySums<1>{{sums}});
}

void AddScaledBranchRows(Input x, Input branch, Input gain, Matrix y) {
  ForAllRows(y, ScaledBranchRule{x, branch, gain.data, y});
}

void AddScaledBranchGradientRows(
    Input g, Input branch, Input gain, Matrix branch_gradient, float* gain_sums) {
  const ScaledBranchGradientRule rule{g, branch, gain.data, branch_gradient};
  for (size_t r = 0; r < g.rows; ++r) {
    rule(RowLanes(), r, 0, g.cols, MemorySums<1>{{gain_sums}});
  }
}

// The sums of MeasurePart, in as many float64 lanes as RowSum has.
struct MagnitudeSums {
  using Tag = hn::CappedTag<double, kRowLanes>;
  static constexpr size_t kLanes = hn::MaxLanes(Tag());
  static constexpr size_t kVectors = kRowLanes / kLanes;
  hn::Vec<Tag> sums[kVectors], squares[kVectors];
  RowVector max = hn::Zero(RowTag());
  size_t nonfinite = 0;

  HWY_INLINE MagnitudeSums() {
    for (size_t v = 0; v < kVectors; ++v) sums[v] = squares[v] = hn::Zero(Tag());
  }
  // Adds kRowLanes elements.
  HWY_INLINE void Add(const float* x) {
    const RowTag d;
    const auto largest = hn::Set(d, std::numeric_limits<float>::max());
    bool all_finite = true;
    for (size_t i = 0; i < kRowLanes; i += kVectorLanes) {
      const auto magnitude = hn::Abs(hn::LoadU(d, x + i));
      const auto finite = hn::Le(magnitude, largest);
      all_finite = all_finite && hn::AllTrue(d, finite);
      max = hn::Max(max, hn::IfThenElseZero(finite, magnitude));
    }
    HWY_ALIGN float kept[kRowLanes];
    if (HWY_UNLIKELY(!all_finite)) x = KeepFinite(x, kept);
    const Tag dd;
    const hn::Rebind<float, Tag> df;
    for (size_t v = 0; v < kVectors; ++v) {
      const auto wide = hn::PromoteTo(dd, hn::LoadU(df, x + v * kLanes));
      sums[v] = hn::Add(sums[v], hn::Abs(wide));
      squares[v] = hn::Add(squares[v], hn::Mul(wide, wide));
    }
  }
  static double Total(const hn::Vec<Tag>* lanes) {
    HWY_ALIGN double all[kRowLanes];
    for (size_t v = 0; v < kVectors; ++v) hn::Store(lanes[v], Tag(), all + v * kLanes);
    for (size_t half = kRowLanes / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) all[i] += all[i + half];
    }
    return all[0];
  }

 private:
  // Copies the finite elements, replaces the others by zeros and counts them.
  const float* KeepFinite(const float* x, float* kept) {
    for (size_t i = 0; i < kRowLanes; ++i) {
      const bool finite = std::isfinite(x[i]);
      kept[i] = finite ? x[i] : 0;
      nonfinite += !finite;
    }
    return kept;
  }
};

void MeasureRows(Input x, AbsoluteStatistics* result) {
  MagnitudeSums sums;
  const size_t whole = x.cols / kRowLanes * kRowLanes;
  for (size_t r = 0; r < x.rows; ++r) {
    const float* const row = x.Row(r);
    for (size_t i = 0; i < whole; i += kRowLanes) sums.Add(row + i);
    if (whole < x.cols) {
      HWY_ALIGN float rest[kRowLanes] = {};
      std::memcpy(rest, row + whole, (x.cols - whole) * sizeof(float));
      sums.Add(rest);
    }
  }
  result->mean = MagnitudeSums::Total(sums.sums);
  result->square_sum = MagnitudeSums::Total(sums.squares);
  result->max = hn::GetLane(hn::MaxOfLanes(RowTag(), sums.max));
  result->nonfinite = sums.nonfinite;
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(AddRows);
HWY_EXPORT(ScaleRows);
HWY_EXPORT(AddBiasToRows);
HWY_EXPORT(AddColumns);
HWY_EXPORT(AddScaledBranchRows);
HWY_EXPORT(AddScaledBranchGradientRows);
HWY_EXPORT(MeasureRows);
HWY_EXPORT(RotateRows);

void AddPart(MatrixSpan<const float> a, MatrixSpan<const float> b, MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(AddRows)(a, b, y);
}
void ScalePart(float factor, MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(ScaleRows)(factor, y);
}
void AddBiasPart(MatrixSpan<const float> bias, MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(AddBiasToRows)(bias, y);
}
void AddColumnsPart(MatrixSpan<const float> x, float* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(AddColumns)(x, sums);
}
void AddScaledBranchPart(MatrixSpan<const float> x,
                         MatrixSpan<const float> branch,
                         MatrixSpan<const float> gain,
                         MatrixSpan<float> y) noexcept {
  HWY_DYNAMIC_DISPATCH(AddScaledBranchRows)(x, branch, gain, y);
}
void AddScaledBranchGradientPart(MatrixSpan<const float> g,
                                 MatrixSpan<const float> branch,
                                 MatrixSpan<const float> gain,
                                 MatrixSpan<float> branch_gradient,
                                 float* gain_sums) noexcept {
  HWY_DYNAMIC_DISPATCH(AddScaledBranchGradientRows)(g, branch, gain, branch_gradient, gain_sums);
}
void RotatePart(const RotatedRows& of, size_t begin, size_t end) noexcept {
  HWY_DYNAMIC_DISPATCH(RotateRows)(of, begin, end);
}
void MeasurePart(MatrixSpan<const float> x, AbsoluteStatistics* sums) noexcept {
  HWY_DYNAMIC_DISPATCH(MeasureRows)(x, sums);
}

}  // namespace numsim
#endif  // HWY_ONCE
