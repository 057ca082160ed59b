// How the loops over matrices with scales are cut, and which rows they take together. For
// quantize/.
#pragma once

#include <algorithm>

#include "numsim/quantize/quantize.h"

namespace numsim {

// Elements handled at a time: scaled values stay in the first-level cache.
inline constexpr size_t kPiece = 1024;
// Pieces and elements that are worth a thread.
inline constexpr size_t kPiecesPerGrain = 16;
inline constexpr size_t kGrain = kPiece * kPiecesPerGrain;

// Rows up to which the preparation of a loop over one row costs more than what JoinRows and
// JoinedColumns add.
inline constexpr size_t kShortRow = 128;
inline constexpr size_t kShortColumns = 256;

// Makes one long row of all rows where the scales allow it and rows are short, for then a loop over
// one of them is mostly preparation. The scales keep their order.
inline void JoinRows(MatrixShape& shape, ScaleLayout& layout) {
  const MatrixShape joined{1, shape.Elements()};
  if (layout.granularity == Granularity::kTensor) {
    shape = joined;
    return;
  }
  const bool row = layout.granularity == Granularity::kRow;
  if (shape.cols > kShortRow || !(row || layout.granularity == Granularity::kBlock)) return;
  const size_t block = row ? shape.cols : std::min(layout.block, shape.cols);
  if (shape.cols % block != 0) return;
  shape = joined;
  layout = {Granularity::kBlock, block};
}

// A matrix whose columns have a scale each, as rows of `count` short rows with as many times the
// scales, and the rows that are left.
struct JoinedColumns {
  size_t count;
  MatrixShape whole, rest;

  explicit JoinedColumns(MatrixShape shape)
      : count(std::min(kPiece / shape.cols, shape.rows)),
        whole{shape.rows / count, count * shape.cols},
        rest{shape.rows % count, shape.cols} {}

  static bool Serves(MatrixShape shape, const ScaleLayout& layout) {
    return layout.granularity == Granularity::kColumn && shape.cols <= kShortColumns;
  }
};

}  // namespace numsim
