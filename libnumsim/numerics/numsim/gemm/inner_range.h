// A range of the inner dimension of a GEMM.
#pragma once

#include <cstddef>

namespace numsim {

// The products from number `begin` to number end - 1.
struct InnerRange {
  size_t begin = 0;
  size_t end = 0;

  // Returns the number of products.
  size_t Size() const { return end - begin; }
};

}  // namespace numsim
