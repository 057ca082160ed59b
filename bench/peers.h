// Products by other libraries, to state numsim's beside: A B^T of n x n matrices, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace numsim::bench {

// float32 by Eigen compiled for this machine, on OpenMP's current number of threads.
void EigenProduct(const float* a, const float* b, size_t n, float* out);
// "Eigen 3.4.0".
const char* EigenName();

// int8 to int32 by oneDNN: a call ready to be repeated, made for OpenMP's current number of
// threads. Empty where numsim is built without oneDNN.
std::function<void()> OneDnnInt8Product(const int8_t* a, const int8_t* b, size_t n, int32_t* out);

}  // namespace numsim::bench
