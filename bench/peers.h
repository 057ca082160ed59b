// GEMMs of other libraries for comparison with numsim: A B^T of n x n matrices, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace numsim::bench {

// Multiplies in float32 with Eigen, compiled for this machine, on OpenMP's current number of
// threads.
void EigenProduct(const float* a, const float* b, size_t n, float* out);
// Returns a text such as "Eigen 3.4.0".
const char* EigenName();

// Returns a function that multiplies int8 matrices to int32 with oneDNN and can be called
// repeatedly. It is prepared for OpenMP's current number of threads. Empty if numsim is built
// without oneDNN.
std::function<void()> OneDnnInt8Product(const int8_t* a, const int8_t* b, size_t n, int32_t* out);

}  // namespace numsim::bench
