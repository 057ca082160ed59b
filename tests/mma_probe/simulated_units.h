// Units for tests of the probe.
#pragma once

#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/mma_probe/tensor_core.h"

namespace numsim {

// A unit that no rule describes: float32 products, added as a balanced binary tree of
// float32 sums.
inline TensorCore PairwiseUnit(const FormatSpec& a, const FormatSpec& b) {
  TensorCore unit{.name = "pairwise", .a = a, .b = b, .multiply = {}};
  unit.multiply = [](std::span<const float> left,
                     std::span<const float> right,
                     size_t inner,
                     std::span<float> out) {
    std::vector<float> sums(inner);
    for (size_t i = 0; i < out.size(); ++i) {
      for (size_t k = 0; k < inner; ++k) {
        sums[k] = left[i / kProbeRows * inner + k] * right[i % kProbeRows * inner + k];
      }
      for (size_t n = inner; n > 1; n = (n + 1) / 2) {
        for (size_t k = 0; 2 * k < n; ++k) {
          sums[k] = 2 * k + 1 < n ? sums[2 * k] + sums[2 * k + 1] : sums[2 * k];
        }
      }
      out[i] = sums[0];
    }
  };
  return unit;
}

}  // namespace numsim
