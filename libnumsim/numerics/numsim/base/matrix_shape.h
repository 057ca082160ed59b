// The shape of a row-major matrix.
#pragma once

#include <cstddef>

namespace numsim {

struct MatrixShape {
  size_t rows = 0;
  size_t cols = 0;

  size_t Elements() const { return rows * cols; }
};

}  // namespace numsim
