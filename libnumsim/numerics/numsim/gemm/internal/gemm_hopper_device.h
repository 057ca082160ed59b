// numsim's own GEMM kernel for Hopper's tensor cores (wgmma): operands in K-major order; scaling,
// rounding and conversion in the store.
#pragma once

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm.h"

namespace numsim::cuda {

// Returns true if MultiplyHopper supports this GEMM. It needs
// - a Hopper device and code built for sm_90a;
// - formats int8 x int8, or e4m3fn and e5m2 in any pair except e5m2 x e5m2 (under accumulation mode
//   hopper-fp8-fast);
// - operands that are not transposed;
// - inner > 0 and a multiple of 16, a.rows > 0, b.rows > 0 and a multiple of 32;
// - inner, a.rows, b.rows and the number of whole tiles of 128 x 256 results below 2^30;
// - codes and results aligned to 16 bytes.
bool ServesHopper(const GemmOperand& a, const GemmOperand& b, FloatSpan out);

// Computes what Gemm computes, with scales as ScalesOfRows has them. Requires ServesHopper.
void MultiplyHopper(const GemmOperand& a, const GemmOperand& b, FloatSpan out);

// Does the same with scales that change along the inner dimension, as Gemm of gemm.h defines it: each
// segment is summed from +0. The operands' own scales are not read; those given are of the first
// `vectors` rows. Requires ServesHopper, and segments of a multiple of 128 elements. Fastest with
// scales that are powers of two between 2^-50 and 2^30; others are multiplied in float64, about four
// times as slowly.
struct HopperScales {
  GemmScales scales = {};
  size_t vectors = 0;
};
void MultiplyHopperBlocks(const GemmOperand& a,
                          const HopperScales& scales_a,
                          const GemmOperand& b,
                          const HopperScales& scales_b,
                          size_t segment,
                          FloatSpan out);

}  // namespace numsim::cuda
