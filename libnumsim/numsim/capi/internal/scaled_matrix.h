// Matrices with scales, given to the C interface.
#pragma once

#include "numsim/capi/internal/arguments.h"
#include "numsim/quantize/quantize.h"

namespace numsim::capi {

// A matrix whose elements can be counted, and its scales.
struct ScaledMatrix {
  MatrixShape shape;
  ScaleLayout layout;

  // NUMSIM_ERROR_BAD_ARGUMENT for more elements than memory has, and for a layout that is none.
  numsim_status_t Read(size_t rows, size_t cols, const numsim_scale_layout_t* given) noexcept;

  size_t Elements() const { return shape.Elements(); }
  size_t Scales() const { return layout.Count(shape.rows, shape.cols); }
  // The element i of the matrix belongs to this scale.
  size_t ScaleOf(size_t i) const {
    return layout.Index(i / shape.cols, i % shape.cols, shape.cols);
  }
  // Where the element i is stored.
  size_t PlaceOf(size_t i, bool transpose) const {
    return transpose ? i % shape.cols * shape.rows + i / shape.cols : i;
  }
};

}  // namespace numsim::capi
