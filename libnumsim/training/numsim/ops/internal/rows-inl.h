// Loops over rows of float32 with vectors of any width, whose results are bit-identical for all
// widths. Re-included per target.
//
// A sum always has 16 lanes, whatever the vector width: element i is added to lane i mod 16 in
// ascending order; then the lanes are added as a tree, i and i + 8, i and i + 4, ... Each product
// and sum is rounded; nothing here is fused.
#if defined(NUMSIM_OPS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_OPS_ROWS_INL_H_
#undef NUMSIM_OPS_ROWS_INL_H_
#else
#define NUMSIM_OPS_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "numsim/ops/internal/row_view.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes; their number is known at compile time.
using RowTag = hn::CappedTag<float, kRowLanes>;
using RowVector = hn::Vec<RowTag>;
inline constexpr size_t kVectorLanes = hn::MaxLanes(RowTag());
inline constexpr size_t kRowVectors = kRowLanes / kVectorLanes;

// Loads `count` elements from x; the other lanes are zero. Reads and writes no others, so a target
// whose masked loads might goes through memory, which takes several times as long.
HWY_INLINE RowVector LoadRow(const float* HWY_RESTRICT x, size_t count) {
  const RowTag d;
  if (HWY_LIKELY(count >= kVectorLanes)) return hn::LoadU(d, x);
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float part[kVectorLanes] = {};
  std::memcpy(part, x, count * sizeof(float));
  return hn::Load(d, part);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, x);
#endif
}
// Stores the first `count` lanes to y.
HWY_INLINE void StoreRow(RowVector v, float* HWY_RESTRICT y, size_t count) {
  const RowTag d;
  if (HWY_LIKELY(count >= kVectorLanes)) return hn::StoreU(v, d, y);
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN float part[kVectorLanes];
  hn::Store(v, d, part);
  std::memcpy(y, part, count * sizeof(float));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, y);
#endif
}

// Calls body(i, count) for the vectors of a row of n elements, where i is the first element of a
// vector. The last vector may have fewer than kVectorLanes elements.
template <class Body>
HWY_INLINE void ForRow(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes) body(i, kVectorLanes);
  if (i < n) body(i, n - i);
}

// A sum in kRowLanes lanes, as described at the top.
struct RowSum {
  RowVector lanes[kRowVectors];

  HWY_INLINE RowSum() {
    for (size_t v = 0; v < kRowVectors; ++v) lanes[v] = hn::Zero(RowTag());
  }
  HWY_INLINE float Total() const {
    HWY_ALIGN float all[kRowLanes];
    for (size_t v = 0; v < kRowVectors; ++v) hn::Store(lanes[v], RowTag(), all + v * kVectorLanes);
    for (size_t half = kRowLanes / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) all[i] += all[i + half];
    }
    return all[0];
  }
};

// Returns v with zeros in lanes `count` and above.
HWY_INLINE RowVector FirstLanes(RowVector v, size_t count) {
  return hn::IfThenElseZero(hn::FirstN(RowTag(), count), v);
}

// Returns the sum of term(i, count), a vector with the terms of elements i .. i + count - 1. Its
// lanes beyond `count` are not added.
template <class Term>
HWY_INLINE float SumRow(size_t n, const Term& term) {
  RowSum sum;
  size_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes) {
    for (size_t v = 0; v < kRowVectors; ++v) {
      sum.lanes[v] = hn::Add(sum.lanes[v], term(i + v * kVectorLanes, kVectorLanes));
    }
  }
  size_t v = 0;
  for (; i + kVectorLanes <= n; ++v, i += kVectorLanes) {
    sum.lanes[v] = hn::Add(sum.lanes[v], term(i, kVectorLanes));
  }
  if (i < n) sum.lanes[v] = hn::Add(sum.lanes[v], FirstLanes(term(i, n - i), n - i));
  return sum.Total();
}

// Returns the largest element of a row without NaN, and any number for other rows. Requires n >= 1.
HWY_INLINE float MaxOfRow(const float* x, size_t n) {
  const RowTag d;
  float max = x[0];
  size_t i = 0;
  if (n >= kVectorLanes) {
    auto lanes = hn::LoadU(d, x);
    for (i = kVectorLanes; i + kVectorLanes <= n; i += kVectorLanes) {
      lanes = hn::Max(lanes, hn::LoadU(d, x + i));
    }
    max = hn::GetLane(hn::MaxOfLanes(d, lanes));
  }
  for (; i < n; ++i) max = std::max(max, x[i]);
  return max;
}

// The lanes of rows_rule.inc: a vector.
struct RowLanes {
  using V = RowVector;
  using M = hn::Mask<RowTag>;

  HWY_INLINE V Set(float x) const { return hn::Set(RowTag(), x); }
  HWY_INLINE V Add(V a, V b) const { return hn::Add(a, b); }
  HWY_INLINE V Sub(V a, V b) const { return hn::Sub(a, b); }
  HWY_INLINE V Mul(V a, V b) const { return hn::Mul(a, b); }
  HWY_INLINE V Div(V a, V b) const { return hn::Div(a, b); }
  HWY_INLINE V Min(V a, V b) const { return hn::Min(a, b); }
  HWY_INLINE V Neg(V a) const { return hn::Neg(a); }
  HWY_INLINE M Lt(V a, V b) const { return hn::Lt(a, b); }
  HWY_INLINE M Le(V a, V b) const { return hn::Le(a, b); }
  HWY_INLINE M Ge(V a, V b) const { return hn::Ge(a, b); }
  HWY_INLINE M Eq(V a, V b) const { return hn::Eq(a, b); }
  HWY_INLINE V Select(M m, V yes, V no) const { return hn::IfThenElse(m, yes, no); }
  HWY_INLINE V AddExponent(V p, V k) const {
    const hn::RebindToSigned<RowTag> di;
    const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, k));
    return hn::BitCast(RowTag(), hn::Add(hn::BitCast(di, p), exponent));
  }
  HWY_INLINE V Load(const float* p, size_t count) const { return LoadRow(p, count); }
  HWY_INLINE void Store(V v, float* p, size_t count) const { StoreRow(v, p, count); }
  template <class Body>
  HWY_INLINE void ForRow(size_t n, const Body& body) const {
    HWY_NAMESPACE::ForRow(n, body);
  }
  template <class Term>
  HWY_INLINE float SumRow(size_t n, const Term& term) const {
    return HWY_NAMESPACE::SumRow(n, term);
  }
  HWY_INLINE float MaxRow(const float* p, size_t n) const { return MaxOfRow(p, n); }
  HWY_INLINE bool Contains(const float* p, size_t n, float x) const {
    return std::find(p, p + n, x) != p + n;
  }
  HWY_INLINE float At(const float* p, size_t i) const { return p[i]; }
  HWY_INLINE bool Owns(size_t) const { return true; }
};

// Sums over rows or vectors, in memory: sum k at of[k].
template <size_t kSums>
struct MemorySums {
  float* of[kSums];

  template <class Term>
  HWY_INLINE float SumRow(const RowLanes& l, size_t n, const Term& term) const {
    return l.SumRow(n, term);
  }
  HWY_INLINE void Add(const RowLanes& l, size_t k, size_t i, size_t count, RowVector term) const {
    l.Store(l.Add(l.Load(of[k] + i, count), term), of[k] + i, count);
  }
};

#define NUMSIM_RULE HWY_INLINE
#define NUMSIM_BODY HWY_ATTR
#include "numsim/ops/internal/rows_rule.inc"
#undef NUMSIM_BODY
#undef NUMSIM_RULE

HWY_INLINE RowVector ExpRow(RowVector x) { return ExpLanes(RowLanes(), x); }

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NUMSIM_OPS_ROWS_INL_H_
