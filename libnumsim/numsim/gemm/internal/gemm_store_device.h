// What is done to the sums of a product when they are in memory already, and to operands before it.
// For gemm/gemm_device.cc.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"

namespace numsim {

enum class SumType : uint8_t { kInt32, kFloat32 };

// A row-major matrix of sums, `stride` elements from row to row.
struct DeviceSums {
  const void* data = nullptr;
  SumType type = SumType::kFloat32;
  size_t stride = 0;
};

// out(i, j) = t, or bf16 of t (nearest even; NaN 0x7FC0), with t = fl32(fl64(S * (sa * sb))) and
// `nan` for every NaN t. Scales: none (1), one or one for each row of out (sa), column (sb).
// The float32 sums may be those of `out` itself.
void StoreScaled(const DeviceSums& sums,
                 DeviceSpan<const float> scales_a,
                 DeviceSpan<const float> scales_b,
                 float nan,
                 const MutableDeviceMatrix& out,
                 DeviceStream& stream);

// Copies `rows` rows of `row_bytes` bytes between matrices whose rows are so many bytes apart.
void CopyRows(const void* in,
              size_t in_pitch,
              void* out,
              size_t out_pitch,
              size_t row_bytes,
              size_t rows,
              DeviceStream& stream);

}  // namespace numsim
