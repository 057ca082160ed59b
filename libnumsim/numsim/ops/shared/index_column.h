// Indices of a batch, such as tokens and targets, where a model computes.
#pragma once

#include <cstdint>
#include <span>

#include "numsim/ops/tensor.h"

namespace numsim {

class IndexColumn {
 public:
  explicit IndexColumn(Place place = Place::kHost) : buffer_(place) {}

  // Copies indices that lie on the host; memory is taken only where the old one is too small.
  // Returns View().
  IndexRef Upload(std::span<const int32_t> indices);
  // Of the last Upload, a row each.
  IndexRef View() const { return buffer_.View(); }

 private:
  Buffer<int32_t> buffer_;
};

}  // namespace numsim
