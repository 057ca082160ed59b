// Division of operations among threads, and checks of their arguments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"

namespace numsim {

// The number of elements that keeps a thread busy for tens of microseconds.
inline constexpr size_t kThreadElements = size_t{1} << 14;

// True for elements of which kernels of a device exist.
template <typename T>
inline constexpr bool kHasKernels = std::is_same_v<T, float>&& NUMSIM_HAVE_CUDA;

// Returns the place of the matrices; those without data fit anywhere. Throws Error if they are at
// several places, or at a device for which there are no kernels.
template <typename T, typename... Matrices>
Place PlaceOf(const char* operation, const Matrices&... matrices) {
  const Place* place = nullptr;
  const auto add = [&](const void* data, const Place& of) {
    if (data == nullptr) return;
    if (place != nullptr && of != *place) RefusePlaces(operation, *place, of);
    place = &of;
  };
  (add(matrices.data, matrices.place), ...);
  if (place == nullptr) return {};
  if constexpr (!kHasKernels<T>) RequireHost(operation, {*place});
  return *place;
}

template <typename... Matrices>
void CheckPlaces(const char* operation, const Matrices&... matrices) {
  RequireHost(operation, {matrices.place...});
}

template <typename T>
void CheckShape(const char* operation, const MatrixSpan<T>& m, size_t rows, size_t cols) {
  NUMSIM_REQUIRE(m.rows == rows && m.cols == cols,
                 "{}: a matrix is {} x {}, expected {} x {}",
                 operation,
                 m.rows,
                 m.cols,
                 rows,
                 cols);
}

// Calls body(begin, end) for ranges that together cover all rows; a row has `work` elements.
template <typename Body>
void ForRowRanges(size_t rows, size_t work, const Body& body) {
  // The body is captured by reference, here and below: a std::function stores a single pointer
  // without allocating.
  const size_t grain = std::max<size_t>(1, kThreadElements / std::max<size_t>(1, work));
  ParallelFor(rows, grain, [&body](size_t begin, size_t end) { body(begin, end); });
}

// Calls kernel(parts...) for parts that together cover the matrices, which have the same shape. The
// kernel must not depend on the position of an element in its matrix.
template <typename Kernel, typename First, typename... Others>
void ForElements(const Kernel& kernel, First first, Others... others) {
  if (!(first.Contiguous() && ... && others.Contiguous())) {
    ForRowRanges(first.rows, first.cols, [&](size_t begin, size_t end) {
      kernel(first.Rows(begin, end - begin), others.Rows(begin, end - begin)...);
    });
    return;
  }
  const auto in_one_row = [](auto m) { return m.As(1, m.Elements()); };
  ForRowRanges(first.Elements(), 1, [&](size_t begin, size_t end) {
    kernel(in_one_row(first).Columns(begin, end - begin),
           in_one_row(others).Columns(begin, end - begin)...);
  });
}

// The terms of this many rows are added one after another; the sums of such blocks are added in
// order.
inline constexpr size_t kSumRows = 128;

// Writes sums over `rows` rows of `work` elements each. add(begin, end, block_sums) adds the terms
// of rows begin .. end - 1, which are one block, to block_sums. These hold the columns of sums[0],
// then those of sums[1], and so on.
template <typename T, size_t kCount, typename Add>
void SumRowBlocks(size_t rows,
                  size_t work,
                  const std::array<MatrixSpan<T>, kCount>& sums,
                  const Add& add) {
  size_t width = 0;
  for (const MatrixSpan<T>& s : sums) width += s.cols;
  const size_t blocks = (rows + kSumRows - 1) / kSumRows;
  thread_local std::vector<T> scratch;
  scratch.resize(std::max(scratch.size(), blocks * width));
  T* const block_sums = scratch.data();
  ForRowRanges(blocks, kSumRows * work, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      std::fill_n(block_sums + b * width, width, T{0});
      add(b * kSumRows, std::min(rows, (b + 1) * kSumRows), block_sums + b * width);
    }
  });
  const T* part = block_sums;
  for (const MatrixSpan<T>& s : sums) {
    std::fill_n(s.data, s.cols, T{0});
    for (size_t b = 0; b < blocks; ++b) {
      const T* const from = part + b * width;
      for (size_t c = 0; c < s.cols; ++c) s.data[c] += from[c];
    }
    if (blocks != 0) part += s.cols;  // without rows there may be no memory to point into
  }
}

}  // namespace numsim
