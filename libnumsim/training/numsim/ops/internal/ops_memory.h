// The memory that operations on a device need besides their arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "numsim/backend/device_context.h"
#include "numsim/ops/internal/row_kernels.h"

namespace numsim::cuda {

// Belongs to a DeviceContext: one operation after another uses it.
struct OpsMemory {
  explicit OpsMemory(Place place) : block_sums(place), losses(place), total(place) {}

  Buffer<float> block_sums;
  Buffer<uint8_t> losses, total;
};

// Returns the block_sums of row_kernels.h for sums over `rows` rows.
template <size_t kSums>
float* BlockSumsAt(Place place, size_t rows, const std::array<MatrixSpan<float>, kSums>& sums) {
  return place.Context().Get<OpsMemory>().block_sums.Renew(BlockSums(rows, sums)).data;
}

}  // namespace numsim::cuda
