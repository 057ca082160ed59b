// Plain products by a linear algebra library: rule library of kernels/gemm.h. oneDNN where it was
// found when numsim was built, else Eigen.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

// A stored row-major matrix as a factor: rows x inner, or inner x rows when transposed.
template <typename Element>
struct LibraryFactor {
  const Element* data = nullptr;
  size_t rows = 0;
  size_t inner = 0;
  bool transposed = false;
};

// out(i, j) = sum over k of a(i, k) b(j, k) in float32, a.rows x b.rows, on ThreadCount() threads.
// Requires equal inner >= 1, rows >= 1.
void LibraryProduct(const LibraryFactor<float>& a, const LibraryFactor<float>& b, float* out);
// The same of bf16 codes, added in float32: as WidenedProduct, or where the processor has a matrix
// unit for bf16 (AMX) and oneDNN is there, by that unit, to which subnormals are zero.
void LibraryProduct(const LibraryFactor<uint16_t>& a, const LibraryFactor<uint16_t>& b, float* out);

// The bf16 product as the float32 product of the same values, which are float32 values too.
void WidenedProduct(const LibraryFactor<uint16_t>& a, const LibraryFactor<uint16_t>& b, float* out);

}  // namespace numsim
