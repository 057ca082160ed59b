// Vector kernels of Hadamard transforms (quantize/hadamard.h). They may work in place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

// How a block is transformed: its number of elements, the sign bit of each element (0 or 0x80000000),
// and the final factor.
struct HadamardPlan {
  size_t size = 0;
  uint32_t signs[128] = {};
  float factor = 1;
};

// Transforms `blocks` blocks that lie one after another.
void HadamardBlocks(const HadamardPlan& plan, const float* in, size_t blocks, float* out);

// Transforms the columns of a band of plan.size rows and `cols` columns. Rows are `stride` elements apart.
void HadamardBand(
    const HadamardPlan& plan, const float* in, size_t stride, size_t cols, float* out);

}  // namespace numsim
