// Vectorised float32 versions of the operations. Each function handles rows, or pieces of them, on
// one thread. Results are bit-identical on all SIMD targets; so the best one is always used, even
// with the backend "scalar".
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/backend/matrix.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/internal/row_view.h"

namespace numsim {

// The per-thread parts of activation.h. Shapes are as in activation.h. Outputs may be inputs of the
// same shape.
void GeluPart(MatrixSpan<const float> x, MatrixSpan<float> y) noexcept;
void GeluGradientPart(MatrixSpan<const float> g,
                      MatrixSpan<const float> x,
                      MatrixSpan<float> dx) noexcept;
void ReluPart(MatrixSpan<const float> x, MatrixSpan<float> y) noexcept;
void ReluGradientPart(MatrixSpan<const float> g,
                      MatrixSpan<const float> x,
                      MatrixSpan<float> dx) noexcept;
void SwigluPart(MatrixSpan<const float> x, MatrixSpan<float> y) noexcept;
void SwigluGradientPart(MatrixSpan<const float> g,
                        MatrixSpan<const float> x,
                        MatrixSpan<float> dx) noexcept;

// Attention over one head of one sequence, for attention.cc. HeadRows are the rows of a head:
// element (t, d) is data[t * stride + d].
struct HeadRows {
  const float* data;
  size_t stride;
};
struct HeadRowsOut {
  float* data;
  size_t stride;
};

struct HeadShape {
  size_t length, head_dim;
  bool causal;
  float scale;       // factor of the scores
  float scale_log2;  // scale / ln 2
  // Whether sums of products are of fused multiply-adds, as in mode fp32, and probabilities are powers
  // of 2. Otherwise products are rounded, as in mode fp32:unfused, and probabilities are powers of e.
  bool fused;
};

// Return the number of floats of scratch memory that Attend and AttendGradient need.
size_t AttendScratch(const HeadShape& shape);
size_t AttendGradientScratch(const HeadShape& shape);

// Computes Attention for one head. Element t of log_sums is at log_sums[t * log_stride].
void Attend(const HeadShape& shape,
            HeadRows q,
            HeadRows k,
            HeadRows v,
            float* log_sums,
            size_t log_stride,
            HeadRowsOut out,
            float* scratch);

// Inputs of AttendGradient, with names as in AttentionGradient.
struct HeadGradientInputs {
  HeadRows g, q, k, v, out;
  const float* log_sums;
  size_t log_stride;
};
void AttendGradient(const HeadShape& shape,
                    const HeadGradientInputs& in,
                    HeadRowsOut dq,
                    HeadRowsOut dk,
                    HeadRowsOut dv,
                    float* scratch);

// The softmax between the products of a head, for products that are computed elsewhere. Matrices are
// length x length, contiguous; elements for tokens that a token does not attend to become 0.
//
// Replaces the scores by exponentials of them that are at most about 1, and writes the sum of each row of
// these, and its log-sum.
void SoftmaxOfScores(
    const HeadShape& shape, float* scores, float* log_sums, size_t log_stride, float* sums);
// Replaces the scores in p by probabilities, and the gradient of these in ds by that of the scores,
// scaled. Of `in` it reads g, out and log_sums.
void GradientsOfScores(const HeadShape& shape, const HeadGradientInputs& in, float* p, float* ds);

// The per-thread parts of elementwise.h. Shapes are as in elementwise.h. Outputs may be inputs of
// the same shape.
void AddPart(MatrixSpan<const float> a, MatrixSpan<const float> b, MatrixSpan<float> y) noexcept;
void ScalePart(float factor, MatrixSpan<float> y) noexcept;
void AddBiasPart(MatrixSpan<const float> bias, MatrixSpan<float> y) noexcept;
// Adds the elements of column c to sums[c], one row after another.
void AddColumnsPart(MatrixSpan<const float> x, float* sums) noexcept;
void AddScaledBranchPart(MatrixSpan<const float> x,
                         MatrixSpan<const float> branch,
                         MatrixSpan<const float> gain,
                         MatrixSpan<float> y) noexcept;
// Adds branch * g of column c to gain_sums[c], one row after another.
void AddScaledBranchGradientPart(MatrixSpan<const float> g,
                                 MatrixSpan<const float> branch,
                                 MatrixSpan<const float> gain,
                                 MatrixSpan<float> branch_gradient,
                                 float* gain_sums) noexcept;
// Measures these elements; sums->mean receives their sum, not their mean. Element c of a row is
// added to lane c mod 16, row after row; then the lanes are added as a tree, as in rows-inl.h.
void MeasurePart(MatrixSpan<const float> x, AbsoluteStatistics* sums) noexcept;

// Arguments of RotatePositions (sequence.h). sign: -1 rotates back.
struct RotatedRows {
  MatrixSpan<const float> cosines, sines;
  size_t head_dim;
  float sign;
  MatrixSpan<float> x;
};
// Rotates rows begin .. end - 1.
void RotatePart(const RotatedRows& of, size_t begin, size_t end) noexcept;

// The per-thread parts of norm.h. Shapes are as in norm.h; vectors are as long as gain. y and dx
// may be inputs of the same shape. gain_sums and bias_sums are added to, one vector after another.
void RmsNormPart(MatrixSpan<const float> x,
                 MatrixSpan<const float> gain,
                 double epsilon,
                 MatrixSpan<float> inverse,
                 MatrixSpan<float> y) noexcept;
void RmsNormGradientPart(MatrixSpan<const float> g,
                         MatrixSpan<const float> x,
                         MatrixSpan<const float> gain,
                         MatrixSpan<const float> inverse,
                         float* gain_sums,
                         MatrixSpan<float> dx) noexcept;
void LayerNormPart(MatrixSpan<const float> x,
                   MatrixSpan<const float> gain,
                   MatrixSpan<const float> bias,
                   double epsilon,
                   MatrixSpan<float> mean,
                   MatrixSpan<float> inverse,
                   MatrixSpan<float> y) noexcept;
void LayerNormGradientPart(MatrixSpan<const float> g,
                           MatrixSpan<const float> x,
                           MatrixSpan<const float> gain,
                           MatrixSpan<const float> mean,
                           MatrixSpan<const float> inverse,
                           float* gain_sums,
                           float* bias_sums,
                           MatrixSpan<float> dx) noexcept;
void UnitNormPart(MatrixSpan<const float> x,
                  MatrixSpan<float> inverse,
                  MatrixSpan<float> y) noexcept;
void UnitNormGradientPart(MatrixSpan<const float> g,
                          MatrixSpan<const float> y,
                          MatrixSpan<const float> inverse,
                          MatrixSpan<float> dx) noexcept;

// Losses of one row.

// Computes CrossEntropy for one counted row of n logits. `gradient`, if not nullptr, receives
// weight * (softmax - one-hot); it may be x.
RowLoss CrossEntropyOfRow(
    const float* x, size_t n, size_t target, float weight, float* gradient) noexcept;

// Returns the sum of (y - target)^2. `gradient`, if not nullptr, receives weight * (y - target); it
// may be y.
float SquaredErrorOfRow(
    const float* y, const float* target, size_t n, float weight, float* gradient) noexcept;

}  // namespace numsim
