// The products of attention's kernels over one head. Re-included per target.
#if defined(NUMSIM_OPS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NUMSIM_OPS_ATTENTION_TILES_INL_H_
#undef NUMSIM_OPS_ATTENTION_TILES_INL_H_
#else
#define NUMSIM_OPS_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "numsim/ops/internal/attention_arithmetic-inl.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The left factor of a matmul. Element (row, k) is data[row * row_stride + k * inner_stride].
struct LeftFactor {
  const float* data;
  size_t row_stride, inner_stride;
};
// The right factor of a matmul. Element (k, column) is data[k * stride + column].
struct RightFactor {
  const float* data;
  size_t stride;
};
// The terms of a sum: a range of the inner dimension.
struct Inner {
  size_t begin, end;
};
// Whether sums begin at zero, or at what the result holds.
enum class Begin : uint8_t { kAtZero, kAtResult };

constexpr size_t kTileRows = 4;
// Vectors of a tile's row: as many as the registers hold.
constexpr size_t kTileVectors = kVectorLanes == kRowLanes ? 4 : 2;

// Computes kRows x `count` elements of the matmul, where `count` fills kVectors - 1 vectors and
// some or all of one more. Each element is the sum over ascending k, as Sums
// (attention_arithmetic-inl.h) adds products.
template <class Sums, size_t kRows, size_t kVectors>
HWY_INLINE void Tile(const LeftFactor& a,
                     const RightFactor& b,
                     const Inner& inner,
                     Begin begin,
                     size_t count,
                     float* HWY_RESTRICT out,
                     size_t out_stride) {
  const RowTag d;
  const size_t last = count - (kVectors - 1) * kVectorLanes;  // elements of the last vector
  RowVector sum[kRows][kVectors];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    if (begin == Begin::kAtZero) continue;
    const float* const from = out + r * out_stride;
    for (size_t v = 0; v + 1 < kVectors; ++v) sum[r][v] = hn::LoadU(d, from + v * kVectorLanes);
    sum[r][kVectors - 1] = LoadRow(from + (kVectors - 1) * kVectorLanes, last);
  }
  // Two loops, because a test within the loop costs as much as the sums.
  const auto add = [&](const auto& load_last) HWY_ATTR {
    const float* HWY_RESTRICT from = b.data + inner.begin * b.stride;
    const float* HWY_RESTRICT factors = a.data + inner.begin * a.inner_stride;
    for (size_t k = inner.begin; k < inner.end; ++k) {
      RowVector right[kVectors];
      for (size_t v = 0; v + 1 < kVectors; ++v) right[v] = hn::LoadU(d, from + v * kVectorLanes);
      right[kVectors - 1] = load_last(from + (kVectors - 1) * kVectorLanes);
      for (size_t r = 0; r < kRows; ++r) {
        const RowVector factor = hn::Set(d, factors[r * a.row_stride]);
        for (size_t v = 0; v < kVectors; ++v) {
          sum[r][v] = Sums::AddProduct(sum[r][v], factor, right[v]);
        }
      }
      from += b.stride;
      factors += a.inner_stride;
    }
  };
  if (last == kVectorLanes) {
    add([&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
  } else {
    add([&](const float* from) HWY_ATTR { return LoadRow(from, last); });
  }
  for (size_t r = 0; r < kRows; ++r) {
    float* const to = out + r * out_stride;
    for (size_t v = 0; v + 1 < kVectors; ++v) hn::StoreU(sum[r][v], d, to + v * kVectorLanes);
    StoreRow(sum[r][kVectors - 1], to + (kVectors - 1) * kVectorLanes, last);
  }
}

// Computes kRows rows and columns [0, cols) of the matmul.
template <class Sums, size_t kRows>
HWY_INLINE void MultiplyRows(const LeftFactor& a,
                             const RightFactor& b,
                             const Inner& inner,
                             Begin begin,
                             size_t cols,
                             float* out,
                             size_t out_stride) {
  for (size_t c = 0; c < cols; c += kTileVectors * kVectorLanes) {
    const size_t count = std::min(kTileVectors * kVectorLanes, cols - c);
    const RightFactor right{b.data + c, b.stride};
    switch ((count + kVectorLanes - 1) / kVectorLanes) {
      case 1:
        Tile<Sums, kRows, 1>(a, right, inner, begin, count, out + c, out_stride);
        break;
      case 2:
        Tile<Sums, kRows, 2>(a, right, inner, begin, count, out + c, out_stride);
        break;
      case 3:
        Tile<Sums, kRows, kTileVectors - 1>(a, right, inner, begin, count, out + c, out_stride);
        break;
      default:
        Tile<Sums, kRows, kTileVectors>(a, right, inner, begin, count, out + c, out_stride);
        break;
    }
  }
}

// Computes rows [0, rows) and columns [0, cols) of the matmul. Requires rows <= kTileRows.
template <class Sums>
HWY_NOINLINE void MultiplyStrip(const LeftFactor& a,
                                const RightFactor& b,
                                const Inner& inner,
                                Begin begin,
                                size_t rows,
                                size_t cols,
                                float* out,
                                size_t out_stride) {
  static_assert(kTileRows == 4);
  switch (rows) {
    case 1:
      return MultiplyRows<Sums, 1>(a, b, inner, begin, cols, out, out_stride);
    case 2:
      return MultiplyRows<Sums, 2>(a, b, inner, begin, cols, out, out_stride);
    case 3:
      return MultiplyRows<Sums, 3>(a, b, inner, begin, cols, out, out_stride);
    default:
      return MultiplyRows<Sums, 4>(a, b, inner, begin, cols, out, out_stride);
  }
}

// Computes `cols` elements of one row of the matmul, as Tile does.
template <class Sums>
HWY_INLINE void MultiplyRow(const LeftFactor& a,
                            const RightFactor& b,
                            const Inner& inner,
                            Begin begin,
                            size_t cols,
                            float* out) {
  ForRow(cols, [&](size_t i, size_t count) HWY_ATTR {
    auto sum = begin == Begin::kAtZero ? hn::Zero(RowTag()) : LoadRow(out + i, count);
    for (size_t k = inner.begin; k < inner.end; ++k) {
      const auto factor = hn::Set(RowTag(), a.data[k * a.inner_stride]);
      sum = Sums::AddProduct(sum, factor, LoadRow(b.data + k * b.stride + i, count));
    }
    StoreRow(sum, out + i, count);
  });
}

inline size_t Padded(size_t length) { return (length + kRowLanes - 1) / kRowLanes * kRowLanes; }

// Writes the transpose of a block of 4 x 4 elements (HWY_SCALAR has no vector of four).
HWY_INLINE void TransposeBlock(const float* HWY_RESTRICT from,
                               size_t from_stride,
                               float* HWY_RESTRICT to,
                               size_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t r = 0; r < 4; ++r) {
    for (size_t c = 0; c < 4; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));  // a0 b0, a1 b1
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * to_stride);
#endif
}

// Writes the transpose of length x head_dim rows: head_dim rows of Padded(length), padded with
// zeros.
inline void Transpose(const HeadShape& shape, const HeadRows& x, float* HWY_RESTRICT out) {
  const size_t width = Padded(shape.length);
  for (size_t d = 0; d < shape.head_dim; ++d) {
    std::fill(out + d * width + shape.length, out + (d + 1) * width, 0.0f);
  }
  const size_t blocks = shape.head_dim / 4 * 4;
  size_t t = 0;
  for (; t + 4 <= shape.length; t += 4) {
    const float* const row = x.data + t * x.stride;
    for (size_t d = 0; d < blocks; d += 4) {
      TransposeBlock(row + d, x.stride, out + d * width + t, width);
    }
    for (size_t d = blocks; d < shape.head_dim; ++d) {
      for (size_t r = 0; r < 4; ++r) out[d * width + t + r] = row[r * x.stride + d];
    }
  }
  for (; t < shape.length; ++t) {
    const float* const row = x.data + t * x.stride;
    for (size_t d = 0; d < shape.head_dim; ++d) out[d * width + t] = row[d];
  }
}

// Writes x y^T for rows [t, t + rows) of x, with y given transposed, into rows of Padded(length).
// Computes as many columns as the last of these rows attends to.
template <class Sums>
void Scores(const HeadShape& shape,
            const HeadRows& x,
            const float* y_transposed,
            size_t t,
            size_t rows,
            float* out) {
  const size_t width = Padded(shape.length);
  const LeftFactor left{x.data + t * x.stride, x.stride, 1};
  const size_t cols = Padded(Seen(shape, t + rows - 1));
  const Inner inner{0, shape.head_dim};
  MultiplyStrip<Sums>(left, {y_transposed, width}, inner, Begin::kAtZero, rows, cols, out, width);
}

// Computes rows [t, t + rows) of x y, where row r of x has elements for the tokens that token r
// attends to. What it does not attend to is left out of the sum, not multiplied by zero: an
// infinite value must not reach tokens before it. x is rows of Padded(length), of which the first
// is that of token t.
template <class Sums>
void MultiplySeen(const HeadShape& shape,
                  const float* x,
                  const HeadRows& y,
                  size_t t,
                  size_t rows,
                  const HeadRowsOut& to) {
  const size_t width = Padded(shape.length), all = Seen(shape, t);
  float* const out = to.data + t * to.stride;
  const RightFactor right{y.data, y.stride};
  MultiplyStrip<Sums>(
      {x, width, 1}, right, {0, all}, Begin::kAtZero, rows, shape.head_dim, out, to.stride);
  for (size_t r = 1; r < rows; ++r) {
    const Inner rest{all, Seen(shape, t + r)};
    MultiplyRow<Sums>({x + r * width, width, 1},
                      right,
                      rest,
                      Begin::kAtResult,
                      shape.head_dim,
                      out + r * to.stride);
  }
}

// Computes out = x^T y in strips of rows. x is length x length, in rows of Padded(length): row r
// has elements for the tokens that token r attends to, and the others are left out of the sums.
template <class Sums>
void MultiplyTransposed(const HeadShape& shape,
                        const float* x,
                        const HeadRows& y,
                        const HeadRowsOut& out) {
  const size_t width = Padded(shape.length), cols = shape.head_dim;
  const RightFactor right{y.data, y.stride};
  for (size_t t = 0; t < shape.length; t += kTileRows) {
    const size_t rows = std::min(kTileRows, shape.length - t);
    const LeftFactor left{x + t, 1, width};
    float* const to = out.data + t * out.stride;
    if (!shape.causal) {
      MultiplyStrip<Sums>(
          left, right, {0, shape.length}, Begin::kAtZero, rows, cols, to, out.stride);
      continue;
    }
    const size_t last = t + rows - 1;  // the first token that attends to all tokens of the strip
    for (size_t r = 0; r < rows; ++r) {
      const Inner before{t + r, last};
      MultiplyRow<Sums>(
          {x + t + r, 1, width}, right, before, Begin::kAtZero, cols, to + r * out.stride);
    }
    MultiplyStrip<Sums>(
        left, right, {last, shape.length}, Begin::kAtResult, rows, cols, to, out.stride);
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NUMSIM_OPS_ATTENTION_TILES_INL_H_
