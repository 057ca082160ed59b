// Losses with their gradients. Rules: tensor.h.
#pragma once

#include "numsim/ops/tensor.h"

namespace numsim {

struct LossSum {
  double sum = 0;      // over counted rows, in nats for cross entropies; float64, in row order
  size_t counted = 0;  // rows
  size_t correct = 0;  // rows whose largest score, the first of equals, is the target's

  double Mean() const { return counted == 0 ? 0 : sum / static_cast<double>(counted); }
};

// Cross entropy of softmax(logits) with targets: row i loses -log softmax(logits.Row(i))[target],
// by the stable form. Rows with target -1 do not count. With data in `gradient` it receives
// factor * (softmax - one-hot) / counted, 0 in rows that do not count; it may be logits. A row with
// a NaN, or whose largest logit is infinite, loses NaN, its gradient is NaN, and it is not correct.
// Requires -1 <= targets < logits.cols, one a row.
template <typename T>
LossSum CrossEntropy(In<T> logits, IndexRef targets, double factor, MatrixSpan<T> gradient);

// Row i loses the mean of (y - target)^2 over its elements; counted = rows, correct = 0. With data
// in `gradient` it receives factor * 2 (y - target) / (rows * cols); it may be y.
template <typename T>
LossSum SquaredError(In<T> y, In<T> target, double factor, MatrixSpan<T> gradient);

// The rows i whose largest score, the first of equals, stands in a column j with classes[j] ==
// classes[i]: retrievals that are right. A row with a NaN is not. Requires as many rows as columns
// and classes.
template <typename T>
size_t CountBestOfClass(MatrixSpan<T> scores, IndexRef classes);

}  // namespace numsim
