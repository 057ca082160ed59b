// The vector loops of quantisation and their scalar references. One thread, any length.
#pragma once

#include <cstddef>

namespace numsim {

// Returns the largest |x| over finite elements, or 0 if there are none.
float FiniteAbsmax(const float* in, size_t n);

// Returns the largest |x|, infinities included; a quiet NaN if any element is NaN.
float AbsmaxOfAll(const float* in, size_t n);

// Raises absmax[i / block] to |in[i]| for every finite element in[i]. Requires block >= 1 and
// absmax values >= 0.
void AccumulateAbsmax(const float* in, size_t n, size_t block, float* absmax);

// Writes out[i] = in[i] * factor, or in[i] * factors[i]. `in` may equal `out`.
void Multiply(const float* in, size_t n, float factor, float* out);
void MultiplyEach(const float* in, size_t n, const float* factors, float* out);

// Expands factors to one per element, n in all: factors[0] for the first `first` elements, then one
// further factor per `block` elements. Up to kSpreadPadding elements beyond n may be overwritten.
// Requires first >= 1 and block >= 1.
inline constexpr size_t kSpreadPadding = 64;
void Spread(const float* factors, size_t first, size_t block, size_t n, float* out);

}  // namespace numsim
