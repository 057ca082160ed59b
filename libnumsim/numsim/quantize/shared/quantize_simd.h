// The vector loops of quantize.cc, and their scalar references. One thread, any length.
#pragma once

#include <cstddef>

namespace numsim {

// The largest |x| over finite elements, 0 when there are none.
float FiniteAbsmax(const float* in, size_t n);

// The largest |x|, infinities included; a quiet NaN if there is one.
float AbsmaxOfAll(const float* in, size_t n);

// absmax[i / block] = the larger of itself and |in[i]|, where that is finite. Requires block >= 1
// and no negative absmax.
void AccumulateAbsmax(const float* in, size_t n, size_t block, float* absmax);

// out[i] = in[i] * factor, or in[i] * factors[i]. in may equal out.
void Multiply(const float* in, size_t n, float factor, float* out);
void MultiplyEach(const float* in, size_t n, const float* factors, float* out);

// out[i] = factors[0] for the first `first` elements, and a factor for each `block` after them: n
// in all. Up to kSpreadPadding more elements of `out` may be written. Requires first and block >=
// 1.
inline constexpr size_t kSpreadPadding = 64;
void Spread(const float* factors, size_t first, size_t block, size_t n, float* out);

}  // namespace numsim
