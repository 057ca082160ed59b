// The representation of every layout of scales as tiles, for the loops of the kernels.
#pragma once

#include <algorithm>

#include "numsim/quantize/quantize.h"

namespace numsim {

// Returns n / by, rounded up.
inline size_t CeilDiv(size_t n, size_t by) { return n / by + (n % by != 0 ? 1 : 0); }

// A layout of scales as tiles: elements with equal row / tile_rows and equal col / tile_cols share
// a scale. Requires a matrix that is not empty.
struct ScaleGrid {
  size_t tile_rows, tile_cols;
  size_t across;  // number of tiles along a row

  ScaleGrid(MatrixShape shape, const ScaleLayout& layout)
      : tile_rows(shape.rows), tile_cols(shape.cols) {
    switch (layout.granularity) {
      case Granularity::kTensor:
        break;
      case Granularity::kRow:
        tile_rows = 1;
        break;
      case Granularity::kColumn:
        tile_cols = 1;
        break;
      case Granularity::kBlock:
        tile_rows = 1;
        tile_cols = std::min(layout.block, shape.cols);
        break;
      case Granularity::kTile:
        tile_rows = std::min(layout.tile_rows, shape.rows);
        tile_cols = std::min(layout.block, shape.cols);
        break;
    }
    across = CeilDiv(shape.cols, tile_cols);
  }

  // Returns the index of the scale of element (row, col), as ScaleLayout::Index does.
  size_t Index(size_t row, size_t col) const { return row / tile_rows * across + col / tile_cols; }
};

}  // namespace numsim
