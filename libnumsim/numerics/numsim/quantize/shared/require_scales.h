// Checks of arrays of scales, for the public functions that take a layout.
#pragma once

#include <cstddef>

#include "numsim/base/matrix_shape.h"
#include "numsim/quantize/scale_layout.h"

namespace numsim {

// Throws Error unless blocks and tiles of the layout have elements.
void RequireLayout(const ScaleLayout& layout, const char* function);

// Throws Error unless the layout passes RequireLayout and `given`, the number of elements of
// `argument`, is its number of scales for a matrix of that shape.
void RequireScales(size_t given,
                   const ScaleLayout& layout,
                   MatrixShape shape,
                   const char* function,
                   const char* argument);

}  // namespace numsim
