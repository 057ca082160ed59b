// Losses with their gradients. elementwise.h states the rules of all operations. On a device a loss
// waits for its result.
#pragma once

#include "numsim/backend/matrix.h"

namespace numsim {

// The sum of the losses of a batch's rows.
struct LossSum {
  double sum = 0;      // over counted rows, in float64 and row order; cross entropy: in nats
  size_t counted = 0;  // number of rows with a target
  size_t correct = 0;  // number of rows whose largest score (the first, if equal) is the target's

  // Returns the mean loss of the counted items; 0 if there are none.
  double Mean() const { return counted == 0 ? 0 : sum / static_cast<double>(counted); }
};

// Returns the cross entropy of softmax(logits) with the targets. The loss of row i is -log
// softmax(logits.Row(i))[target], computed in the stable form. Rows with target -1 do not count. If
// `gradient` has data, it receives factor * (softmax - one-hot) / counted, and 0 in rows that do
// not count; it may be `logits`. If a row contains a NaN or its largest logit is infinite, its loss
// and gradient are NaN and it is not correct. Requires one target per row, -1 <= target <
// logits.cols.
template <typename T>
LossSum CrossEntropy(In<T> logits, IndexRef targets, double factor, MatrixSpan<T> gradient);

// Returns the squared error. The loss of row i is the mean of (y - target)^2 over its elements;
// counted = rows and correct = 0. If `gradient` has data, it receives factor * 2 (y - target) /
// (rows * cols); it may be y.
template <typename T>
LossSum SquaredError(In<T> y, In<T> target, double factor, MatrixSpan<T> gradient);

// Returns the number of correct retrievals: rows i whose largest score (the first, if equal) is in
// a column j with classes[j] == classes[i]. A row with a NaN is not correct. Requires equal numbers
// of rows, columns and classes.
template <typename T>
size_t CountBestOfClass(MatrixSpan<T> scores, IndexRef classes);

}  // namespace numsim
