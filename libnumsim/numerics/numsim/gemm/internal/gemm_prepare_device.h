// Copies of operands and results of GEMMs where a kernel needs another order, size or address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "numsim/backend/device.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/internal/gemm_library_device.h"

namespace numsim::cuda {

// Returns true if all elements of a vector share a scale, and no vectors share one, or all do.
inline bool HasScalesOfRows(const GemmOperand& x) {
  return x.scales.data.Empty() ||
         (x.scales.segment == 0 &&
          (x.scales.row_stride == 0 || (x.scales.row_stride == 1 && x.scales.row_group == 1)));
}
// Returns the number of those scales: 0 (all are 1), 1 for all vectors, or one per vector. Vectors
// that were added in a copy have none.
inline size_t ScalesOfRows(const GemmOperand& x) {
  const size_t given = x.scales.data.Elements();
  if (given == 0) return 0;
  return x.scales.row_stride == 0 ? 1 : std::min(x.rows, given);
}

// Returns the operand with other codes: at `data`, at `place`, of `rows` vectors of length `inner`.
// Scales stay.
GemmOperand WithCodes(const GemmOperand& x,
                      const void* data,
                      size_t rows,
                      size_t inner,
                      bool transposed,
                      Place place);

// Returns true if the address is a multiple of 16, as fast kernels need.
inline bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

// Returns n rounded up to a multiple of 16, of which fast kernels need rows and inner dimensions.
inline size_t RoundedUp(size_t n) { return (n + 15) / 16 * 16; }

// Returns `x` padded with zeros to `rows` x `inner`, at an aligned address and, if `turned`, not
// transposed. Copies `x` into `copies` only if that is necessary.
GemmOperand Prepared(const GemmOperand& x,
                     size_t rows,
                     size_t inner,
                     bool turned,
                     OperandCopies& copies,
                     DeviceStream& stream);

// Returns true if ServesHopper will support these operands and this result once prepared.
bool ServesHopperPrepared(const GemmOperand& a, const GemmOperand& b, FloatSpan out);

// One of numsim's kernels for Hopper.
using HopperKernel = std::function<void(const GemmOperand&, const GemmOperand&, FloatSpan)>;

// Runs the kernel on prepared operands and, if the result must be padded too, copies the result.
// Requires ServesHopperPrepared.
void MultiplyPrepared(const GemmOperand& a,
                      const GemmOperand& b,
                      FloatSpan out,
                      const HopperKernel& kernel);

}  // namespace numsim::cuda
