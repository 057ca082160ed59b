// Groups of weights that share a target, an alpha or a scale: consecutive elements of a matrix
// stored row by row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "numsim/quantize/scale_layout.h"

namespace numsim {

// Consecutive elements of an array.
struct ElementRange {
  size_t begin = 0, count = 0;

  template <typename T>
  std::span<T> Of(std::span<T> array) const {
    return array.subspan(begin, count);
  }
};

// The groups of a rows x cols matrix under layout kTensor, kRow or kBlock, in the order of scales.
class ElementGroups {
 public:
  // Returns true for the layouts that groups can have.
  static bool Has(const ScaleLayout& layout) {
    return layout.granularity == Granularity::kTensor || layout.granularity == Granularity::kRow ||
           (layout.granularity == Granularity::kBlock && layout.block >= 1);
  }

  ElementGroups(const ScaleLayout& layout, size_t rows, size_t cols)
      : layout_(layout), rows_(rows), cols_(cols) {}

  size_t Count() const { return layout_.Count(rows_, cols_); }

  // Returns the elements of a group. Requires group < Count().
  ElementRange At(size_t group) const {
    switch (layout_.granularity) {
      case Granularity::kRow:
        return {group * cols_, cols_};
      case Granularity::kBlock: {
        const size_t per_row = layout_.BlocksPerRow(cols_);
        const size_t col = group % per_row * layout_.block;
        return {group / per_row * cols_ + col, std::min(layout_.block, cols_ - col)};
      }
      default:
        return {0, rows_ * cols_};
    }
  }

 private:
  ScaleLayout layout_;
  size_t rows_, cols_;
};

}  // namespace numsim
