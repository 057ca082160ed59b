#include "numsim/optim/optimizer_rule.h"

#include <algorithm>
#include <bit>

#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/step_sums.h"

namespace numsim {

DirectionSums& DirectionSums::operator+=(const DirectionSums& other) {
  ratio_square += other.ratio_square;
  update_square += other.update_square;
  max_update = std::max(max_update, other.max_update);
  return *this;
}

DirectionSums SumsOf(std::span<const float> direction) {
  return SumOverBlocks<DirectionSums>(direction.size(), [&](size_t begin, size_t count) {
    const float* const block = direction.data() + begin;
    DirectionSums sums;
    sums.update_square = SquaredSumOfBlock(block, count);
    sums.max_update = std::bit_cast<uint32_t>(AbsmaxOfAll(block, count)) & 0x7FFFFFFF;
    return sums;
  });
}

bool IsMatrix(ParameterRole role) {
  return role == ParameterRole::kMatrix || role == ParameterRole::kEmbedding;
}

}  // namespace numsim
