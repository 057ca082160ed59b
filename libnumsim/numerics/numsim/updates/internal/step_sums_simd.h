// The inner loops of step_sums.h in vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

// The partial sums of a block: element i of the block belongs to partial sum i mod 8.
inline constexpr size_t kPartialSums = 8;

// Adds x^2 of a prefix of the block to `squares` (kPartialSums numbers). Returns the prefix's
// length, a multiple of kPartialSums, which is 0 on targets without such vectors.
size_t AddSquaresSimd(const float* x, size_t n, double* squares) noexcept;

// Does what AddSquaresSimd does for `update`, and raises most_weight and most_update to the bits of
// the magnitudes of the same prefix of both arrays.
size_t AddScanSimd(const float* weights,
                   const float* update,
                   size_t n,
                   double* squares,
                   uint32_t& most_weight,
                   uint32_t& most_update) noexcept;

// Adds D^2 and D update, with D = after - before, of a prefix of the block to `squares` and
// `projections` (kPartialSums numbers each), and the number of its elements with after != before to
// `moved`. Returns the prefix's length, as above.
size_t AddStepSimd(const float* before,
                   const float* after,
                   const float* update,
                   size_t n,
                   double* squares,
                   double* projections,
                   uint64_t& moved) noexcept;

}  // namespace numsim
