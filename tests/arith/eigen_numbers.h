// Matrices of SoftFloat for the tests of eigen_support.h.
#pragma once

#include <cstdint>

#include "numsim/arith/eigen_support.h"

namespace numsim {

using E4M3 = SoftFloat<kE4M3fn>;
using E5M2 = SoftFloat<kE5M2>;
using Bf16 = SoftFloat<kBf16>;
using Fp16 = SoftFloat<kFp16>;
template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

// Numbers of up to `span` in magnitude from a linear congruential sequence, rounded to T.
template <typename T>
Matrix<T> Numbers(int rows, int columns, uint32_t seed, float span) {
  Matrix<T> m(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      seed = seed * 1664525u + 1013904223u;
      m(i, j) = T(span * (static_cast<float>(seed >> 8) * 0x1p-23f - 1));
    }
  }
  return m;
}

}  // namespace numsim
