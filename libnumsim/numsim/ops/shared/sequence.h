// Tokens, positions, patches: how inputs become rows and which rows are taken. Rules: tensor.h.
//
// A batch of sequences lies one after another: row b * length + t is token t of sequence b.
#pragma once

#include "numsim/ops/tensor.h"

namespace numsim {

// y.Row(i) = table.Row(ids[i]). Requires 0 <= ids[i] < table.rows.
template <typename T>
void GatherRows(In<T> table, IndexRef ids, MatrixSpan<T> y);
// table_gradient.Row(r) = the sum of g.Row(i) over all i with ids[i] == r, in ascending i; 0 for
// rows that are not named. All of table_gradient is written.
template <typename T>
void GatherRowsGradient(In<T> g, IndexRef ids, MatrixSpan<T> table_gradient);

// y.Row(b * length + t) += table.Row(t), length = table.rows. Requires y.rows a multiple of it.
template <typename T>
void AddPositions(In<T> table, MatrixSpan<T> y);
// table_gradient.Row(t) = the sum of g.Row(b * length + t) over b.
template <typename T>
void AddPositionsGradient(In<T> g, MatrixSpan<T> table_gradient);

// Rotary positions [RoPE] in place. Row i has position i mod length; each of its x.cols / head_dim
// heads is rotated: elements j and j + head_dim/2, j < head_dim/2, turn by angle position *
// base^(-2j / head_dim). cosines, sines: length x head_dim/2, of RotaryTables. Requires an even
// head_dim. `inverse` turns the other way: the gradient.
template <typename T>
void RotatePositions(In<T> cosines, In<T> sines, size_t head_dim, bool inverse, MatrixSpan<T> x);
template <typename T>
void RotaryTables(double base, size_t head_dim, MatrixSpan<T> cosines, MatrixSpan<T> sines);

// Images (count x height*width*channels, channels last) as rows of patches: row
// i * (height/patch) * (width/patch) + p is patch p of image i, row by row, its elements in the
// order (y, x, channel). Requires patch to divide height and width.
template <typename T>
void CutPatches(In<T> images,
                size_t height,
                size_t width,
                size_t channels,
                size_t patch,
                MatrixSpan<T> patches);

// y, (length + 1) rows a sequence: first `token` (1 x cols), then the sequence's rows of x.
template <typename T>
void PrependToken(In<T> x, size_t length, In<T> token, MatrixSpan<T> y);
// token_gradient (1 x cols) and dx from g.
template <typename T>
void PrependTokenGradient(In<T> g, size_t length, MatrixSpan<T> token_gradient, MatrixSpan<T> dx);

// y.Row(b) = x.Row(b * length + at[b]): one row of each sequence. Without data in `at`: row 0.
template <typename T>
void TakeRows(In<T> x, size_t length, IndexRef at, MatrixSpan<T> y);
// All of dx is written, 0 for rows that were not taken.
template <typename T>
void TakeRowsGradient(In<T> g, size_t length, IndexRef at, MatrixSpan<T> dx);

}  // namespace numsim
