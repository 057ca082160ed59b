// The operations of ops/ on a device, after the checks of their arguments: in the stream of `place`,
// with the parameters of the operations. loss.h's wait for their result.
#pragma once

#include <cstddef>

#include "numsim/backend/matrix.h"
#include "numsim/ops/loss.h"

namespace numsim::cuda {

// elementwise.h
void Copy(Place place, In<float> x, MatrixSpan<float> y);
void CopyTransposed(Place place, In<float> x, MatrixSpan<float> y);
void Fill(Place place, float value, MatrixSpan<float> y);
void Add(Place place, In<float> a, In<float> b, MatrixSpan<float> y);
void ScaleBy(Place place, float factor, MatrixSpan<float> y);
void AddBias(Place place, In<float> bias, MatrixSpan<float> y);
void ColumnSums(Place place, In<float> x, MatrixSpan<float> sums);
void AddScaledBranch(
    Place place, In<float> x, In<float> branch, In<float> gain, MatrixSpan<float> y);
void AddScaledBranchGradient(Place place,
                             In<float> g,
                             In<float> branch,
                             In<float> gain,
                             MatrixSpan<float> branch_gradient,
                             MatrixSpan<float> gain_gradient);

// activation.h
void Gelu(Place place, In<float> x, MatrixSpan<float> y);
void GeluGradient(Place place, In<float> g, In<float> x, MatrixSpan<float> dx);
void Relu(Place place, In<float> x, MatrixSpan<float> y);
void ReluGradient(Place place, In<float> g, In<float> x, MatrixSpan<float> dx);
void Swiglu(Place place, In<float> x, MatrixSpan<float> y);
void SwigluGradient(Place place, In<float> g, In<float> x, MatrixSpan<float> dx);

// norm.h
void RmsNorm(Place place,
             In<float> x,
             In<float> gain,
             double epsilon,
             MatrixSpan<float> inverse,
             MatrixSpan<float> y);
void RmsNormGradient(Place place,
                     In<float> g,
                     In<float> x,
                     In<float> gain,
                     In<float> inverse,
                     MatrixSpan<float> gain_gradient,
                     MatrixSpan<float> dx);
void LayerNorm(Place place,
               In<float> x,
               In<float> gain,
               In<float> bias,
               double epsilon,
               MatrixSpan<float> mean,
               MatrixSpan<float> inverse,
               MatrixSpan<float> y);
void LayerNormGradient(Place place,
                       In<float> g,
                       In<float> x,
                       In<float> gain,
                       In<float> mean,
                       In<float> inverse,
                       MatrixSpan<float> gain_gradient,
                       MatrixSpan<float> bias_gradient,
                       MatrixSpan<float> dx);
void UnitNorm(Place place, In<float> x, MatrixSpan<float> inverse, MatrixSpan<float> y);
void UnitNormGradient(
    Place place, In<float> g, In<float> y, In<float> inverse, MatrixSpan<float> dx);

// sequence.h. An index that is out of range makes its row of the result NaN, or goes nowhere.
void GatherRows(Place place, In<float> table, IndexRef ids, MatrixSpan<float> y);
void GatherRowsGradient(Place place, In<float> g, IndexRef ids, MatrixSpan<float> table_gradient);
void AddPositions(Place place, In<float> table, MatrixSpan<float> y);
void AddPositionsGradient(Place place, In<float> g, MatrixSpan<float> table_gradient);
void RotatePositions(Place place,
                     In<float> cosines,
                     In<float> sines,
                     size_t head_dim,
                     bool inverse,
                     MatrixSpan<float> x);
void CutPatches(Place place,
                In<float> images,
                size_t height,
                size_t width,
                size_t channels,
                size_t patch,
                MatrixSpan<float> patches);
void PrependToken(Place place, In<float> x, size_t length, In<float> token, MatrixSpan<float> y);
void PrependTokenGradient(Place place,
                          In<float> g,
                          size_t length,
                          MatrixSpan<float> token_gradient,
                          MatrixSpan<float> dx);
void TakeRows(Place place, In<float> x, size_t length, IndexRef at, MatrixSpan<float> y);
void TakeRowsGradient(Place place, In<float> g, size_t length, IndexRef at, MatrixSpan<float> dx);

// loss.h
LossSum CrossEntropy(
    Place place, In<float> logits, IndexRef targets, double factor, MatrixSpan<float> gradient);
LossSum SquaredError(
    Place place, In<float> y, In<float> target, float weight, MatrixSpan<float> gradient);

}  // namespace numsim::cuda
