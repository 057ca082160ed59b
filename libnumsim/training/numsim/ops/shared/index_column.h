// Indices of a batch, such as tokens and targets, in the memory where a model computes.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/backend/matrix.h"

namespace numsim {

// A column of indices that owns its memory.
class IndexColumn {
 public:
  explicit IndexColumn(Place place = Place()) : buffer_(place) {}

  // Copies indices from host memory and returns View(). Allocates only if the current memory is too
  // small.
  IndexRef Upload(std::span<const int32_t> indices);
  // Returns the indices of the last Upload, one per row.
  IndexRef View() const { return buffer_.View(); }

 private:
  Buffer<int32_t> buffer_;
};

}  // namespace numsim
