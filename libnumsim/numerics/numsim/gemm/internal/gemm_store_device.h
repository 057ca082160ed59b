// Device passes beside the GEMM itself: scaling sums that are already in memory, copying rows of
// operands. For gemm_tensor_cores_device.cc.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm.h"

namespace numsim::cuda {

enum class SumType : uint8_t { kInt32, kFloat32 };

// A row-major matrix of sums, with `stride` elements from one row to the next; or several such matrices,
// `part_stride` elements apart, that stand for their sum.
struct DeviceSums {
  const void* data = nullptr;
  SumType type = SumType::kFloat32;
  size_t stride = 0;
  size_t parts = 1, part_stride = 0;
};

// Writes out(i, j) = t, or t rounded to bf16 (nearest even; NaN 0x7FC0), with
// t = fl32(fl64(S * (sa * sb))) and `nan` for every NaN t. S is the sum of the parts, in their order
// from +0. The scales are those of the operands, as ScalesOfRows has them. `out` may lie where the
// float32 sums of the first part do.
void StoreScaled(
    const DeviceSums& sums, const GemmOperand& a, const GemmOperand& b, float nan, FloatSpan out);

// Copies `rows` rows of `row_bytes` bytes each. Rows are in_pitch and out_pitch bytes apart.
void CopyRows(const void* in,
              size_t in_pitch,
              void* out,
              size_t out_pitch,
              size_t row_bytes,
              size_t rows,
              DeviceStream& stream);

}  // namespace numsim::cuda
