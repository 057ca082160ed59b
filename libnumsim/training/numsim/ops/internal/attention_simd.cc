#include <algorithm>

#include "numsim/ops/internal/ops_simd.h"

// Arrays of vectors require a vector size known at compile time, which these targets lack.
#ifndef HWY_DISABLED_TARGETS  // predefined in sanitizer builds, which disable more targets
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/ops/internal/attention_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/ops/internal/attention_arithmetic-inl.h"
#include "numsim/ops/internal/attention_tiles-inl.h"
#include "numsim/ops/internal/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Sums>
void ScaleRow(float factor, size_t n, float* row) {
  const auto by = hn::Set(RowTag(), factor);
  ForRow(n, [&](size_t i, size_t count) HWY_ATTR {
    StoreRow(hn::Mul(Sums::Finish(LoadRow(row + i, count)), by), row + i, count);
  });
}

template <class Sums>
void AttendIn(const HeadShape& shape,
              const HeadRows& q,
              const HeadRows& k,
              const HeadRows& v,
              float* log_sums,
              size_t log_stride,
              const HeadRowsOut& out,
              float* scratch) {
  const size_t width = Padded(shape.length);
  float* const keys = scratch;
  float* const strip = keys + shape.head_dim * width;
  Transpose(shape, k, keys);
  for (size_t t = 0; t < shape.length; t += kTileRows) {
    const size_t rows = std::min(kTileRows, shape.length - t);
    Scores<Sums>(shape, q, keys, t, rows, strip);
    float sums[kTileRows];
    for (size_t r = 0; r < rows; ++r) {
      float* const row = strip + r * width;
      log_sums[(t + r) * log_stride] = ExpOfScores<Sums>(shape, Seen(shape, t + r), row, &sums[r]);
    }
    MultiplySeen<Sums>(shape, strip, v, t, rows, out);
    float* const to = out.data + t * out.stride;
    for (size_t r = 0; r < rows; ++r) {
      ScaleRow<Sums>(1.0f / sums[r], shape.head_dim, to + r * out.stride);
    }
  }
}

void AttendHead(const HeadShape& shape,
                HeadRows q,
                HeadRows k,
                HeadRows v,
                float* log_sums,
                size_t log_stride,
                HeadRowsOut out,
                float* scratch) {
  const auto attend = shape.fused ? AttendIn<Fused> : AttendIn<Unfused>;
  attend(shape, q, k, v, log_sums, log_stride, out, scratch);
}

template <class Sums>
void AttendGradientIn(const HeadShape& shape,
                      const HeadGradientInputs& in,
                      const HeadRowsOut& dq,
                      const HeadRowsOut& dk,
                      const HeadRowsOut& dv,
                      float* scratch) {
  const size_t width = Padded(shape.length);
  float* const keys = scratch;
  float* const values = keys + shape.head_dim * width;
  float* const p = values + shape.head_dim * width;
  float* const ds = p + shape.length * width;
  Transpose(shape, in.k, keys);
  Transpose(shape, in.v, values);
  for (size_t t = 0; t < shape.length; t += kTileRows) {
    const size_t rows = std::min(kTileRows, shape.length - t);
    Scores<Sums>(shape, in.q, keys, t, rows, p + t * width);
    Scores<Sums>(shape, in.g, values, t, rows, ds + t * width);
    for (size_t r = t; r < t + rows; ++r) {
      ScoreGradients<Sums>(shape, in, r, p + r * width, ds + r * width);
    }
    MultiplySeen<Sums>(shape, ds + t * width, in.k, t, rows, dq);
  }
  MultiplyTransposed<Sums>(shape, p, in.g, dv);
  MultiplyTransposed<Sums>(shape, ds, in.q, dk);
}

void AttendHeadGradient(const HeadShape& shape,
                        const HeadGradientInputs& in,
                        HeadRowsOut dq,
                        HeadRowsOut dk,
                        HeadRowsOut dv,
                        float* scratch) {
  if (!shape.fused) return AttendGradientIn<Unfused>(shape, in, dq, dk, dv, scratch);
  AttendGradientIn<Fused>(shape, in, dq, dk, dv, scratch);
  for (const HeadRowsOut& x : {dq, dk, dv}) {
    for (size_t t = 0; t < shape.length; ++t) {
      ScaleRow<Fused>(1.0f, shape.head_dim, x.data + t * x.stride);
    }
  }
}

void ExpOfHead(
    const HeadShape& shape, float* scores, float* log_sums, size_t log_stride, float* sums) {
  const auto exp_of = shape.fused ? ExpOfScores<Fused> : ExpOfScores<Unfused>;
  for (size_t t = 0; t < shape.length; ++t) {
    float* const row = scores + t * shape.length;
    const size_t seen = Seen(shape, t);
    log_sums[t * log_stride] = exp_of(shape, seen, row, sums + t);
    std::fill(row + seen, row + shape.length, 0.0f);
  }
}

void ScoreGradientsOfHead(const HeadShape& shape,
                          const HeadGradientInputs& in,
                          float* p,
                          float* ds) {
  const auto gradients = shape.fused ? ScoreGradients<Fused> : ScoreGradients<Unfused>;
  for (size_t t = 0; t < shape.length; ++t) {
    const size_t begin = t * shape.length;
    gradients(shape, in, t, p + begin, ds + begin);
    for (float* const row : {p + begin, ds + begin}) {
      std::fill(row + Seen(shape, t), row + shape.length, 0.0f);
    }
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {
namespace {

size_t PaddedLength(const HeadShape& shape) { return (shape.length + 15) / 16 * 16; }

}  // namespace

HWY_EXPORT(AttendHead);
HWY_EXPORT(AttendHeadGradient);
HWY_EXPORT(ExpOfHead);
HWY_EXPORT(ScoreGradientsOfHead);

size_t AttendScratch(const HeadShape& shape) {
  return PaddedLength(shape) * (shape.head_dim + 4);  // the transposed keys and a strip of scores
}

size_t AttendGradientScratch(const HeadShape& shape) {
  return PaddedLength(shape) * 2 * (shape.head_dim + shape.length);
}

void Attend(const HeadShape& shape,
            HeadRows q,
            HeadRows k,
            HeadRows v,
            float* log_sums,
            size_t log_stride,
            HeadRowsOut out,
            float* scratch) {
  HWY_DYNAMIC_DISPATCH(AttendHead)(shape, q, k, v, log_sums, log_stride, out, scratch);
}

void AttendGradient(const HeadShape& shape,
                    const HeadGradientInputs& in,
                    HeadRowsOut dq,
                    HeadRowsOut dk,
                    HeadRowsOut dv,
                    float* scratch) {
  HWY_DYNAMIC_DISPATCH(AttendHeadGradient)(shape, in, dq, dk, dv, scratch);
}

void SoftmaxOfScores(
    const HeadShape& shape, float* scores, float* log_sums, size_t log_stride, float* sums) {
  HWY_DYNAMIC_DISPATCH(ExpOfHead)(shape, scores, log_sums, log_stride, sums);
}

void GradientsOfScores(const HeadShape& shape, const HeadGradientInputs& in, float* p, float* ds) {
  HWY_DYNAMIC_DISPATCH(ScoreGradientsOfHead)(shape, in, p, ds);
}

}  // namespace numsim
#endif  // HWY_ONCE
