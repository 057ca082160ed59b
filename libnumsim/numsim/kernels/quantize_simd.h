// The vector loops of quantize.cc, and their scalar references. One thread, any length.
#pragma once

#include <cstddef>

namespace numsim {

// The largest |x| over finite elements, 0 when there are none.
float FiniteAbsmax(const float* in, size_t n);

// absmax[i] = max(absmax[i], |in[i]| if finite else 0).
void AccumulateAbsmax(const float* in, size_t n, float* absmax);

// out[i] = in[i] * factor, or in[i] * factors[i]. in may equal out.
void Multiply(const float* in, size_t n, float factor, float* out);
void MultiplyEach(const float* in, size_t n, const float* factors, float* out);

}  // namespace numsim
