// Sums over the elements of a step, in float64 and in an order that depends only on the length. In
// each block of kSumBlock elements, element i is added to partial sum i mod 8, in ascending order;
// then the eight partial sums are added in order, and then the blocks in order. So no sum depends
// on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/base/parallel.h"

namespace numsim {

// Elements per block of a sum: few enough that a block's buffers stay in the first-level cache.
inline constexpr size_t kSumBlock = 4096;

// Calls body(begin, count) for every block of n elements, on all threads.
template <typename Body>
void ForEachBlock(size_t n, const Body& body) {
  constexpr size_t kGrain = 8;  // blocks that are worth a thread
  ParallelFor((n + kSumBlock - 1) / kSumBlock, kGrain, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      body(b * kSumBlock, std::min(kSumBlock, n - b * kSumBlock));
    }
  });
}

// Returns the sum of body(begin, count) over the blocks of n elements, added in their order.
// Requires that Sum{} is zero and that Sum has an operator +=.
template <typename Sum, typename Body>
Sum SumOverBlocks(size_t n, const Body& body) {
  if (n <= kSumBlock) return n == 0 ? Sum{} : body(size_t{0}, n);
  std::vector<Sum> sums((n + kSumBlock - 1) / kSumBlock);
  ForEachBlock(n,
               [&](size_t begin, size_t count) { sums[begin / kSumBlock] = body(begin, count); });
  Sum total{};
  for (const Sum& sum : sums) total += sum;
  return total;
}

// Sums over a step, with D = after - before, rounded to float64.
struct StepSums {
  double square = 0;       // sum of D^2
  double projection = 0;   // sum of D update
  uint64_t moved = 0;      // elements with after != before
  uint64_t saturated = 0;  // elements that the step takes beyond a limit, see SumStep

  StepSums& operator+=(const StepSums& other) {
    square += other.square;
    projection += other.projection;
    moved += other.moved;
    saturated += other.saturated;
    return *this;
  }
};

// Returns the sum of x^2 over one block, on one thread. Requires n <= kSumBlock.
double SquaredSumOfBlock(const float* x, size_t n) noexcept;
// Returns the sums of one block, on one thread, with `saturated` 0. Requires n <= kSumBlock.
StepSums StepSumsOfBlock(const float* before,
                         const float* after,
                         const float* update,
                         size_t n) noexcept;
// Returns the number of elements with |before + alpha update|, in float64, above `limit`. n may be
// any number.
uint64_t CountBeyond(
    const float* before, const float* update, double alpha, double limit, size_t n) noexcept;

// Returns the sum of x^2.
double SquaredSum(std::span<const float> x);

// Returns the sums of a step in one pass over arrays of equal length; throws Error for others.
// `saturated` counts the elements with |before + alpha update|, in float64, above `limit`, which
// may be infinite.
StepSums SumStep(std::span<const float> before,
                 std::span<const float> after,
                 std::span<const float> update,
                 float alpha,
                 double limit);

}  // namespace numsim
