// Copies, sums and scalings of matrices. Rules: tensor.h.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "numsim/cast/cast.h"
#include "numsim/ops/tensor.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

template <typename T>
void Copy(In<T> x, MatrixSpan<T> y);
// float32 values that lie on the host to where y lies; exact.
template <typename T>
void Upload(std::span<const float> values, MatrixSpan<T> y);
template <typename T>
void Fill(std::type_identity_t<T> value, MatrixSpan<T> y);
// y = a + b. y may be a or b.
template <typename T>
void Add(In<T> a, In<T> b, MatrixSpan<T> y);
// y = factor y.
template <typename T>
void ScaleBy(std::type_identity_t<T> factor, MatrixSpan<T> y);

// Every row of y += bias (1 x cols).
template <typename T>
void AddBias(In<T> bias, MatrixSpan<T> y);
// sums (1 x cols) = the sums of the columns of x: the gradient of a bias. Here and wherever a
// gradient is added up over rows: blocks of 128 rows are added from zero in ascending order, and
// their sums are.
template <typename T>
void ColumnSums(In<T> x, MatrixSpan<T> sums);

// Layer-scale [CaiT]: y = x + gain (1 x cols) * branch, elementwise. y may be x.
template <typename T>
void AddScaledBranch(In<T> x, In<T> branch, In<T> gain, MatrixSpan<T> y);
// From the gradient g of y: of the branch, gain * g, and of the gain, the column sums of
// branch * g. (That of x is g.) branch_gradient may be g or branch.
template <typename T>
void AddScaledBranchGradient(
    In<T> g, In<T> branch, In<T> gain, MatrixSpan<T> branch_gradient, MatrixSpan<T> gain_gradient);

// x = the values of x rounded to plan.format, in place: storage in that format. Element (row, col)
// draws the random bits of element row * cols + col. float64 is rounded once, from float64.
template <typename T>
void RoundTo(const EncodePlan& plan, MatrixSpan<T> x, const ArrayRandom& random = {});

// What telemetry says of a tensor; sums in float64, block by block as above.
struct AbsoluteStatistics {
  double mean = 0, max = 0;  // of |x|; of the finite elements
  double square_sum = 0;     // of the finite elements
  size_t nonfinite = 0;      // NaN and infinities
};
template <typename T>
AbsoluteStatistics MeasureAbsolute(MatrixSpan<T> x);

}  // namespace numsim
