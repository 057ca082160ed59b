// The inner loops of products under block-scaled modes, on one tile of sums. One thread. The caller
// sets the default floating-point environment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/gemm/internal/gemm_simd.h"

namespace numsim {

// The exponent of a scale that does not take part in the search for the largest one.
inline constexpr int32_t kNoScaleExponent = -2048;

// The groups of one chunk of a tile: sums(g, r, c) of products, and for each group the scales of rows
// and columns with their exponents (kNoScaleExponent for a scale of zero).
struct ScaledGroups {
  int fraction_bits;  // F
  size_t count;
  const float* sums;
  const double* scales_a;
  const double* scales_b;
  const int32_t* exponents_a;
  const int32_t* exponents_b;
};

// Advances acc by one chunk, as kBlockScaled of arith/accumulation_mode.h says for groups. Tiles have
// the shape of Float32Tile(). Requires sums that float32 holds, and results within float32. Rounds
// toward zero while it runs.
void AddScaledGroups(const ScaledGroups& groups, float* acc);

}  // namespace numsim
