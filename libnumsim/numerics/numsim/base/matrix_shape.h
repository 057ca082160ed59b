// The shape of a row-major matrix.
#pragma once

#include <cstddef>

namespace numsim {

// The numbers of rows and columns of a matrix.
struct MatrixShape {
  size_t rows = 0;
  size_t cols = 0;

  // Returns the number of elements.
  size_t Elements() const { return rows * cols; }
};

}  // namespace numsim
