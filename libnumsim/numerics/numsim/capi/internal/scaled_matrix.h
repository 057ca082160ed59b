// Matrices with scales that are passed to the C interface.
#pragma once

#include "numsim/capi/internal/arguments.h"
#include "numsim/quantize/quantize.h"

namespace numsim::capi {

// Checked shape and scale layout of a matrix.
struct ScaledMatrix {
  MatrixShape shape;
  ScaleLayout layout;

  // Returns NUMSIM_ERROR_BAD_ARGUMENT if the matrix has more elements than fit into memory, or if
  // the layout is invalid.
  numsim_status_t Read(size_t rows, size_t cols, const numsim_scale_layout_t* given) noexcept;

  size_t Elements() const { return shape.Elements(); }
  size_t Scales() const { return layout.Count(shape.rows, shape.cols); }
  // Returns the index of the scale of element i.
  size_t ScaleOf(size_t i) const {
    return layout.Index(i / shape.cols, i % shape.cols, shape.cols);
  }
  // Returns the position at which element i is stored.
  size_t PlaceOf(size_t i, bool transpose) const {
    return transpose ? i % shape.cols * shape.rows + i / shape.cols : i;
  }
};

}  // namespace numsim::capi
