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
// Errors are added in the order of [TransformerEngine]: those of a row of the group from left to right, and
// the sums of 2^n rows by halves, the first row with the one half the group below it; other numbers of
// rows, and columns of one element, from top to bottom. Infinities and NaN count as no error.
void ChooseFourOrSix(std::span<const float> in,
                     MatrixShape shape,
                     const ScaleLayout& layout,
                     ScaleRule rule,
                     const ScaleFactory& maker,
                     float absmax,
                     std::span<float> maxima,
                     std::span<float> inv_scales);

}  // namespace numsim
