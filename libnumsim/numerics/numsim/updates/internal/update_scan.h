// The first scan of weights and update: are they finite, and how large?
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace numsim {

// The largest magnitudes, as bits, so that NaN is greatest, and the sum of update^2 in the order of
// step_sums.h.
struct Scan {
  uint32_t weights = 0, update = 0;
  double update_square = 0;

  Scan& operator+=(const Scan& other) {
    weights = std::max(weights, other.weights);
    update = std::max(update, other.update);
    update_square += other.update_square;
    return *this;
  }
  bool Finite() const { return std::max(weights, update) < 0x7F800000u; }
};

// Scans one block on one thread. Requires n <= kSumBlock.
Scan ScanBlock(const float* weights, const float* update, size_t n);

// Scans arrays of equal length on all threads.
Scan ScanArrays(std::span<const float> weights, std::span<const float> update);

}  // namespace numsim
