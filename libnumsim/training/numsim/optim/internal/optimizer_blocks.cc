#include "numsim/optim/internal/optimizer_blocks.h"

#include <array>

#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

// Calls `body` with the block [begin, begin + count) and its scaled gradient.
double WithBlock(const RuleStep& step, size_t begin, size_t count, BlockFunction body) {
  alignas(64) std::array<float, kSumBlock> gradient;
  Multiply(step.gradient.data + begin, count, step.factor, gradient.data());
  return body({step, begin, count, gradient.data()});
}

}  // namespace

DirectionSums StepInBlocks(const RuleStep& step, BlockFunction body) {
  const size_t n = step.direction.size();
  return SumOverBlocks<DirectionSums>(n, [&](size_t begin, size_t count) {
    const double ratio_square = WithBlock(step, begin, count, body);
    DirectionSums sums = SumsOf(step.direction.subspan(begin, count));
    sums.ratio_square = ratio_square;
    return sums;
  });
}

DirectionSums StepInBlocks(const RuleStep& step, BlockFunction advance, BlockFunction direct) {
  if (!step.from_stored) {
    return StepInBlocks(step,
                        [&](const RuleBlock& block) { return advance(block) + direct(block); });
  }
  const double ratio_square = SumOverBlocks<double>(
      step.direction.size(),
      [&](size_t begin, size_t count) { return WithBlock(step, begin, count, advance); });
  step.store();
  DirectionSums sums = StepInBlocks(step, direct);
  sums.ratio_square += ratio_square;
  return sums;
}

}  // namespace numsim
