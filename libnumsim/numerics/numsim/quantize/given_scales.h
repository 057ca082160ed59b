// Matrices that somebody else has quantised: codes with given scales, as checkpoints have them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

// An array as matrices of one shape, one after the other in memory.
struct MatrixStack {
  size_t matrices = 1;
  MatrixShape shape;  // of each

  // Returns the number of elements of all matrices.
  size_t Elements() const { return matrices * shape.Elements(); }
};

// Returns the array as a stack: the last two dimensions are a matrix, and those before them count the
// matrices. A vector is a matrix of one row.
MatrixStack StackOf(std::span<const size_t> shape);

// Returns the array as one matrix: the first dimension gives the rows, the others the columns. A
// vector is one row.
MatrixStack FirstDimensionAsRows(std::span<const size_t> shape);

// How given scales belong to an array of codes: matrix i of the stack has the scales
// [i * n, (i + 1) * n) with n = layout.Count(rows, cols).
struct ScalePlacement {
  MatrixStack stack;
  ScaleLayout layout;
};

// Returns the placement of scales of the shape `scales` for codes of the shape `codes`.
//
// With `named`, the scales are those of that layout for each matrix of the stack: the dimensions
// before the last two, then the grid of ShapeOfScales(). Dimensions of 1 at its end may be left out,
// and the scales of columns may be (columns,). A single scale serves all matrices.
//
// Without `named`, the shape of the scales tells:
//   one number                              one scale for all
//   the first dimensions of the codes       one per index of these, as (rows,), (rows, 1), (out, 1, 1)
//     and then dimensions of 1              or (experts, rows, 1): `row`
//   (..., 1, columns); (columns,)           one per column
// A grid of another shape does not tell the size of its blocks, because the last block may be
// partial; then it must be that of `usual`.
//
// Throws Error that states both shapes and the expected one if the scales do not fit.
ScalePlacement PlaceScales(std::span<const size_t> codes,
                           std::span<const size_t> scales,
                           const std::optional<ScaleLayout>& named,
                           const std::optional<ScaleLayout>& usual = std::nullopt);

// Returns the grid of scales of a matrix: () for tensor, (rows, 1), (1, columns), (rows, blocks of a
// row) or (bands of tiles, tiles of a band).
std::vector<size_t> ShapeOfScales(const ScaleLayout& layout, MatrixShape shape);

// Returns a quantised matrix on the host with these codes, StorageBytes() bytes each in the order of
// the matrix, and these scales: value = code value * scale, rounded to float32. Any scale is taken as
// it is. Throws Error for a format of more than 16 bits, codes with bits above the format's width, and
// sizes that do not fit the shape and the layout.
QuantizedMatrix FromCodes(const FormatSpec& format,
                          MatrixShape shape,
                          const ScaleLayout& layout,
                          std::span<const uint8_t> code_bytes,
                          std::span<const float> scales);

}  // namespace numsim
