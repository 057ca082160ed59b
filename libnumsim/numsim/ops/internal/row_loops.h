// Parallel loops over single rows.
#pragma once

#include "numsim/ops/internal/pieces.h"

namespace numsim {

// Calls body(row) for every row of [0, rows), on all threads; `work` elements each. A row is one
// thread's, so no result can depend on their number.
template <typename Body>
void ForRows(size_t rows, size_t work, const Body& body) {
  // One pointer, which a std::function holds without taking memory.
  ForRowRanges(rows, work, [&body](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) body(row);
  });
}

// Calls body(begin, count) for pieces of `cols` columns, on all threads; `work` elements a column.
// A column is one thread's, which may walk through its rows in one order.
template <typename Body>
void ForColumns(size_t cols, size_t work, const Body& body) {
  constexpr size_t kLine = 16;  // float32 of a cache line
  ForRowRanges((cols + kLine - 1) / kLine, kLine * work, [&body, cols](size_t begin, size_t end) {
    body(begin * kLine, std::min(cols, end * kLine) - begin * kLine);
  });
}

}  // namespace numsim
