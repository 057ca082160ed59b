// The functions of rows-inl.h on arrays, by dispatch to the active target.
#pragma once

#include <cstddef>

namespace numsim {

void ExpOf(const float* x, size_t n, float* y);
void Exp2Of(const float* x, size_t n, float* y);  // of fused_rows-inl.h
void SigmoidOf(const float* x, size_t n, float* y);
float SumOf(const float* x, size_t n);
// The sum of x[i] + 1.
float SumOfSuccessors(const float* x, size_t n);

}  // namespace numsim
