// Transposition on a device: for operands and scales that a GEMM needs transposed. Only in builds with
// CUDA.
#pragma once

#include <cstddef>

#include "numsim/backend/device.h"
#include "numsim/base/matrix_shape.h"

namespace numsim::cuda {

// Writes the transpose of `in`, a contiguous matrix of the given shape, to `out`. `bytes` is the size
// of an element, 1, 2 or 4.
void Transpose(const void* in, MatrixShape shape, size_t bytes, void* out, DeviceStream& stream);

}  // namespace numsim::cuda
