// The parts of elementwise.h that one thread does, for float32, in vectors. Bits do not depend on
// the SIMD target; the backend "scalar" takes the best one too.
#pragma once

#include "numsim/tensor/elementwise.h"

namespace numsim {

// Shapes as in elementwise.h. Outputs may be inputs of the same shape.
void AddPart(MatrixRef<const float> a, MatrixRef<const float> b, MatrixRef<float> y) noexcept;
void ScalePart(float factor, MatrixRef<float> y) noexcept;
void AddBiasPart(MatrixRef<const float> bias, MatrixRef<float> y) noexcept;
// sums[c] += the elements of column c, one after another.
void AddColumnsPart(MatrixRef<const float> x, float* sums) noexcept;
void AddScaledBranchPart(MatrixRef<const float> x,
                         MatrixRef<const float> branch,
                         MatrixRef<const float> gain,
                         MatrixRef<float> y) noexcept;
// gain_sums[c] += branch * g of column c, one row after another.
void AddScaledBranchGradientPart(MatrixRef<const float> g,
                                 MatrixRef<const float> branch,
                                 MatrixRef<const float> gain,
                                 MatrixRef<float> branch_gradient,
                                 float* gain_sums) noexcept;
// Of these elements; sums->mean is their sum, not their mean. Element c of a row is added to lane
// c mod 16, row after row, then lanes are added in a tree as in rows-inl.h.
void MeasurePart(MatrixRef<const float> x, AbsoluteStatistics* sums) noexcept;

}  // namespace numsim
