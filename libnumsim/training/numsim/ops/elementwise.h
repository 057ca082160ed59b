// Copies, sums and scalings of matrices.
//
// Rules of all operations of this directory: They take views (backend/matrix.h), which say where
// the data are, and run there. All exist on the host. In float32 all but MeasureAbsolute,
// CountBestOfClass, attention, products and temperatures exist on a device too, with the bits of the
// host and a NaN for a NaN; other calls with data of a device throw Error. Views without data fit any
// place. The shapes named in a comment are required; other shapes throw
// Error. Outputs are the last parameters and do not overlap inputs unless stated. Results depend
// only on the arguments, not on the number of threads or the SIMD target, because the shapes
// determine the order of every sum. NaN and infinities propagate as in IEEE 754. Operations
// allocate nothing, except each thread's scratch memory on first use, and that of a device's context.
// Each operation exists for float and double (the T of a template is one of these). float64 is for
// tests and reference runs and is not tuned.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "numsim/backend/matrix.h"
#include "numsim/cast/cast.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// y = x.
template <typename T>
void Copy(In<T> x, MatrixSpan<T> y);
// y = the transpose of x.
template <typename T>
void CopyTransposed(In<T> x, MatrixSpan<T> y);
// y = the float32 values, given in host memory and in row-major order. y may be on another device.
// The conversion is exact.
template <typename T>
void Upload(std::span<const float> values, MatrixSpan<T> y);
// Sets all elements of y to `value`.
template <typename T>
void Fill(std::type_identity_t<T> value, MatrixSpan<T> y);
// y = a + b. y may be a or b.
template <typename T>
void Add(In<T> a, In<T> b, MatrixSpan<T> y);
// y = factor y.
template <typename T>
void ScaleBy(std::type_identity_t<T> factor, MatrixSpan<T> y);

// Adds bias (1 x cols) to every row of y.
template <typename T>
void AddBias(In<T> bias, MatrixSpan<T> y);
// sums (1 x cols) = the column sums of x, for example the gradient of a bias. Here and wherever
// gradients are summed over rows, the rows of each block of 128 are added to zero in ascending
// order, and then the sums of the blocks are added in ascending order.
template <typename T>
void ColumnSums(In<T> x, MatrixSpan<T> sums);

// Layer-scale [CaiT]: y = x + gain (1 x cols) * branch, elementwise. y may be x.
template <typename T>
void AddScaledBranch(In<T> x, In<T> branch, In<T> gain, MatrixSpan<T> y);
// Computes the gradients from the gradient g of y: branch_gradient = gain * g, and gain_gradient =
// the column sums of branch * g. (The gradient of x is g.) branch_gradient may be g or branch.
template <typename T>
void AddScaledBranchGradient(
    In<T> g, In<T> branch, In<T> gain, MatrixSpan<T> branch_gradient, MatrixSpan<T> gain_gradient);

// Rounds the elements of x to plan.format, in place, which simulates storage in that format.
// Element (row, col) uses the random bits of element index row * cols + col. float64 values are
// rounded once, directly from float64.
template <typename T>
void RoundTo(const EncodePlan& plan, MatrixSpan<T> x, const ArrayRandom& random = {});

// Statistics of the magnitudes of a tensor, for telemetry. Sums are in float64, in blocks of rows
// as for ColumnSums.
struct AbsoluteStatistics {
  double mean = 0, max = 0;  // of |x|, over the finite elements
  double square_sum = 0;     // over the finite elements
  size_t nonfinite = 0;      // number of NaNs and infinities
};
template <typename T>
AbsoluteStatistics MeasureAbsolute(MatrixSpan<T> x);

}  // namespace numsim
