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

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kRowLanes = 16;
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

// Returns e^x with an error below 1 ulp. The result is 0 below the logarithm of the smallest normal
// float32 (-87.3), infinity above that of the largest (88.7), and NaN for NaN.
HWY_INLINE RowVector ExpRow(RowVector x) {
  const RowTag d;
  const hn::RebindToSigned<RowTag> di;
  const auto low = hn::Set(d, -87.336544f), high = hn::Set(d, 88.722839f);
  // x = k ln 2 + r. Adding 1.5 * 2^23 rounds to an integer, k, and leaves it in the low bits.
  const auto shift = hn::Set(d, 0x1.8p23f);
  const auto shifted = hn::Add(hn::Mul(x, hn::Set(d, 1.44269504f)), shift);
  const auto k = hn::Sub(shifted, shift);
  // ln 2 in two parts; k times the first part is exact.
  auto r = hn::Sub(x, hn::Mul(k, hn::Set(d, 0.693359375f)));
  r = hn::Sub(r, hn::Mul(k, hn::Set(d, -2.12194440e-4f)));
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 1.3981999507e-3f));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 8.3334519073e-3f));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 4.1665795894e-2f));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 1.6666665459e-1f));
  p = hn::Add(hn::Mul(p, r), hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::Add(hn::Mul(p, hn::Mul(r, r)), r), hn::Set(d, 1.0f));
  // Multiplies by 2^k by adding k to the exponent. Between the limits the result is normal.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  auto y = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  y = hn::IfThenZeroElse(hn::Lt(x, low), y);
  y = hn::IfThenElse(hn::Ge(x, high), hn::Set(d, HUGE_VALF), y);
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

// Returns 1 / (1 + e^-x), within 2 ulp where the result is normal.
HWY_INLINE RowVector SigmoidRow(RowVector x) {
  const RowTag d;
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, ExpRow(hn::Neg(x))));
}
// s = SigmoidRow(x) and rest = 1 - s, which keeps full precision where s is near 1.
struct SigmoidParts {
  RowVector s, rest;
};
HWY_INLINE SigmoidParts SigmoidPartsRow(RowVector x) {
  const RowTag d;
  const auto one = hn::Set(d, 1.0f);
  const auto e = ExpRow(hn::Neg(x));
  const auto s = hn::Div(one, hn::Add(one, e));
  // Where e is infinite, s is 0 and so is the product, which is only used multiplied by s.
  return {s, hn::Mul(hn::Min(e, hn::Set(d, 0x1p127f)), s)};
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NUMSIM_OPS_ROWS_INL_H_
