// Sums over the elements of a step, in float64 and in an order that the length alone decides:
// blocks of kSumBlock elements; in a block, element i is added to partial sum i mod 8 in ascending
// order, then the eight are added in order; then the blocks in order. So no sum depends on the
// threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/base/parallel.h"

namespace numsim {

// The unit of summation, and small enough that a block's buffers stay in the first-level cache.
inline constexpr size_t kSumBlock = 4096;

// Calls body(begin, count) for every block of n elements, on all threads.
template <typename Body>
void ForEachBlock(size_t n, const Body& body) {
  constexpr size_t kGrain = 8;  // blocks worth a thread's while
  ParallelFor((n + kSumBlock - 1) / kSumBlock, kGrain, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      body(b * kSumBlock, std::min(kSumBlock, n - b * kSumBlock));
    }
  });
}

// The sum of body(begin, count) over those blocks, added in their order. Requires Sum{} to be zero
// and an operator +=.
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

// What a step did, with D = after - before, rounded to float64.
struct StepSums {
  double square = 0;       // sum of D^2
  double projection = 0;   // sum of D update
  uint64_t moved = 0;      // elements with after != before
  uint64_t saturated = 0;  // elements wanted beyond a limit, see SumStep

  StepSums& operator+=(const StepSums& other) {
    square += other.square;
    projection += other.projection;
    moved += other.moved;
    saturated += other.saturated;
    return *this;
  }
};

// Of one block, on one thread: n <= kSumBlock.
double SquaredSumOfBlock(const float* x, size_t n) noexcept;
// `saturated` stays 0.
StepSums StepSumsOfBlock(const float* before,
                         const float* after,
                         const float* update,
                         size_t n) noexcept;
// Elements with |before + alpha update|, in float64, above `limit`; of any number.
uint64_t CountBeyond(
    const float* before, const float* update, double alpha, double limit, size_t n) noexcept;

// Sum of x^2.
double SquaredSum(std::span<const float> x);

// One pass over arrays of equal length. `saturated` counts the elements with
// |before + alpha update|, in float64, above `limit`, which may be infinite.
StepSums SumStep(std::span<const float> before,
                 std::span<const float> after,
                 std::span<const float> update,
                 float alpha,
                 double limit);

}  // namespace numsim
