// Tokens, positions and patches: operations that turn inputs into rows and select rows.
// elementwise.h states the rules of all operations.
//
// Indices on a device are checked by nobody: that of a row out of range makes the row of the result
// NaN, and the gradient of such a row goes nowhere.
//
// The sequences of a batch are stored one after another: row b * length + t is token t of sequence
// b.
#pragma once

#include "numsim/backend/matrix.h"

namespace numsim {

// y.Row(i) = table.Row(ids[i]). Requires 0 <= ids[i] < table.rows.
template <typename T>
void GatherRows(In<T> table, IndexRef ids, MatrixSpan<T> y);
// table_gradient.Row(r) = the sum of g.Row(i) over all i with ids[i] == r, in ascending i. Rows
// without such an i become 0, so all of table_gradient is written.
template <typename T>
void GatherRowsGradient(In<T> g, IndexRef ids, MatrixSpan<T> table_gradient);

// y.Row(b * length + t) += table.Row(t), where length = table.rows must divide y.rows.
template <typename T>
void AddPositions(In<T> table, MatrixSpan<T> y);
// table_gradient.Row(t) = the sum of g.Row(b * length + t) over b.
template <typename T>
void AddPositionsGradient(In<T> g, MatrixSpan<T> table_gradient);

// Applies rotary positions [RoPE] in place. Row i has position i mod length. In each of its x.cols
// / head_dim heads, the elements j and j + head_dim/2, j < head_dim/2, are rotated by the angle
// position * base^(-2j / head_dim). cosines and sines (length x head_dim/2) come from RotaryTables.
// `inverse` rotates in the opposite direction, which back-propagates a gradient. Requires an even
// head_dim.
template <typename T>
void RotatePositions(In<T> cosines, In<T> sines, size_t head_dim, bool inverse, MatrixSpan<T> x);
// Writes the cosines and sines of all positions for RotatePositions; one row per position.
template <typename T>
void RotaryTables(double base, size_t head_dim, MatrixSpan<T> cosines, MatrixSpan<T> sines);

// Cuts images (count x height*width*channels, channels last) into rows of patches. Row i *
// (height/patch) * (width/patch) + p is patch p of image i, with patches in row-major order; its
// elements are in the order (y, x, channel). Requires patch to divide height and width.
template <typename T>
void CutPatches(In<T> images,
                size_t height,
                size_t width,
                size_t channels,
                size_t patch,
                MatrixSpan<T> patches);

// Writes `length` + 1 rows of y per sequence: first `token` (1 x cols), then the sequence's rows of
// x.
template <typename T>
void PrependToken(In<T> x, size_t length, In<T> token, MatrixSpan<T> y);
// Writes token_gradient (1 x cols) and dx from the gradient g of y.
template <typename T>
void PrependTokenGradient(In<T> g, size_t length, MatrixSpan<T> token_gradient, MatrixSpan<T> dx);

// y.Row(b) = x.Row(b * length + at[b]): selects one row per sequence. If `at` has no data, row 0.
template <typename T>
void TakeRows(In<T> x, size_t length, IndexRef at, MatrixSpan<T> y);
// Writes all of dx: the gradient g in the selected rows, and 0 in the others.
template <typename T>
void TakeRowsGradient(In<T> g, size_t length, IndexRef at, MatrixSpan<T> dx);

}  // namespace numsim
