// The splitting of loops over matrices with scales, and the joining of short rows. Internal to
// quantize/.
#pragma once

#include <algorithm>

#include "numsim/quantize/quantize.h"

namespace numsim {

// The number of elements handled at a time, so that scaled values stay in the first-level cache.
inline constexpr size_t kPiece = 1024;
// The numbers of pieces and of elements worth starting a thread for.
inline constexpr size_t kPiecesPerGrain = 16;
inline constexpr size_t kGrain = kPiece * kPiecesPerGrain;

// The longest rows, in elements, for which JoinRows and JoinedColumns pay off: for such rows,
// setting up a loop over one row costs more than joining rows does.
inline constexpr size_t kShortRow = 128;
inline constexpr size_t kShortColumns = 256;

// Joins all rows into one long row, if the layout of scales allows it and rows are short (a loop
// over a short row is mostly set-up). With one scale for the whole matrix, rows of any length are
// joined. The scales keep their order.
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

// A matrix with one scale per column and short rows, split in two parts. In `whole`, each row joins
// `count` rows of the matrix, with the scales repeated `count` times. `rest` has the other rows.
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
