// Matrices for tests of operations.
#pragma once

#include <cstring>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/random/distributions.h"

namespace numsim {

// A matrix whose rows have gaps behind them, which an operation must leave as they are.
template <typename T>
class Grid {
 public:
  // Elements that no result has: what an operation does not write is seen.
  Grid(size_t rows, size_t cols)
      : rows_(rows), cols_(cols), values_(rows * (cols + kGap), T{-12345}) {}
  // Normal draws, float32 values for either T.
  Grid(size_t rows, size_t cols, uint64_t seed) : Grid(rows, cols) {
    std::vector<float> draws(rows * cols);
    FillNormal({seed, 0}, 0, draws);
    for (size_t i = 0; i < draws.size(); ++i) (*this)(i / cols, i % cols) = T{draws[i]};
  }

  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  T& operator()(size_t row, size_t col) { return values_[row * (cols_ + kGap) + col]; }
  const T& operator()(size_t row, size_t col) const { return values_[row * (cols_ + kGap) + col]; }
  MatrixSpan<T> View() { return {values_.data(), rows_, cols_, cols_ + kGap}; }
  MatrixSpan<const T> View() const { return {values_.data(), rows_, cols_, cols_ + kGap}; }

  bool GapsAreUntouched() const {
    for (size_t row = 0; row < rows_; ++row) {
      for (size_t gap = 0; gap < kGap; ++gap) {
        if ((*this)(row, cols_ + gap) != T{-12345}) return false;
      }
    }
    return true;
  }
  // Gaps included.
  bool HasBitsOf(const Grid& other) const {
    if (values_.empty() || other.values_.empty()) return values_.empty() && other.values_.empty();
    return values_.size() == other.values_.size() &&
           std::memcmp(values_.data(), other.values_.data(), values_.size() * sizeof(T)) == 0;
  }

 private:
  static constexpr size_t kGap = 3;
  size_t rows_, cols_;
  std::vector<T> values_;
};

inline IndexRef Indices(const std::vector<int32_t>& indices) {
  return {indices.data(), indices.size(), 1};
}

}  // namespace numsim
