// Losses of one row of float32, in vectors: loss_simd.cc. Bits do not depend on the target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

struct RowLoss {
  double loss = 0;
  bool correct = false;
};

// As CrossEntropy, of a row of n logits that counts. gradient, if not nullptr, receives weight *
// (softmax - one-hot); it may be x.
RowLoss CrossEntropyOfRow(
    const float* x, size_t n, size_t target, float weight, float* gradient) noexcept;

// The sum of (y - target)^2. gradient, if not nullptr, receives weight * (y - target); it may be y.
float SquaredErrorOfRow(
    const float* y, const float* target, size_t n, float weight, float* gradient) noexcept;

}  // namespace numsim
