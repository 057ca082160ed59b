// Parallel loops over single rows.
#pragma once

#include "numsim/ops/internal/pieces.h"

namespace numsim {

// Calls body(row) for every row of [0, rows), using all threads; a row has `work` elements. Each
// row is processed by one thread, so results do not depend on the number of threads.
template <typename Body>
void ForRows(size_t rows, size_t work, const Body& body) {
  // Captures one pointer, which a std::function stores without allocating.
  ForRowRanges(rows, work, [&body](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) body(row);
  });
}

// Calls body(begin, count) for ranges of the `cols` columns, using all threads; a column has `work`
// elements. Each column is processed by one thread, which may visit its rows in a fixed order.
template <typename Body>
void ForColumns(size_t cols, size_t work, const Body& body) {
  constexpr size_t kLine = 16;  // number of float32 in a cache line
  ForRowRanges((cols + kLine - 1) / kLine, kLine * work, [&body, cols](size_t begin, size_t end) {
    body(begin * kLine, std::min(cols, end * kLine) - begin * kLine);
  });
}

}  // namespace numsim
