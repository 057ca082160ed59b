// The choice between two scales of a group by its elements.
#pragma once

#include <span>

#include "numsim/base/matrix_shape.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"

namespace numsim {

// Replaces the absolute maxima of the groups by their scales under a rule with ComparesElements, and writes
// the inverses. `maker` is for the tensor, whose absolute maximum over finite elements is `absmax`.
//
// Errors are added in float32 in the order of [TransformerEngine]. Within a row of the group they are added
// from left to right. If the number of rows is a power of two, the sum of row r is then added to that of
// row r + rows / 2, and so on with half as many rows until one is left. Otherwise, and for groups of one
// column, the rows are added from top to bottom. Infinities and NaN count as no error.
void ChooseFourOrSix(std::span<const float> in,
                     MatrixShape shape,
                     const ScaleLayout& layout,
                     ScaleRule rule,
                     const ScaleFactory& maker,
                     float absmax,
                     std::span<float> maxima,
                     std::span<float> inv_scales);

}  // namespace numsim
