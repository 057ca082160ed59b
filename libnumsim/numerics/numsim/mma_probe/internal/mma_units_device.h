// Runs individual tensor core instructions of the device. Intended for probes, not for speed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "numsim/backend/matrix.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// A tensor core instruction. Its accumulators are float32, or int32 for int8 operands.
struct MmaUnit {
  std::string_view name;         // "mma.sync.m16n8k32 e4m3fn x e5m2"
  FormatSpec a, b;               // tf32 operands are stored as float32 numbers with tf32 values
  bool warpgroup;                // true: wgmma, available only on Hopper; false: mma.sync
  int least_compute_capability;  // 10 major + minor

  // Inner dimension of one instruction: 32 bytes of each operand.
  size_t InnerStep() const { return 32 / static_cast<size_t>(a.StorageBytes()); }
};
std::span<const MmaUnit> MmaUnits();

// Returns the reason why the device cannot run the instruction or why this build has no code for
// it. Returns an empty string if it can run.
std::string MmaUnavailable(const MmaUnit& unit);

// Sets out(i, j) to the instruction's sum over k of a(i, k) b(j, k); `out` is rows_a x rows_b,
// row-major. Operands are codes, rows x inner, row-major, without gaps. The accumulator starts at
// zero and passes from instruction to instruction, k ascending. Sums of int8 are converted to
// float32, which is exact for magnitudes up to 2^24. Requires a unit of MmaUnits() for which
// MmaUnavailable() is empty, and `inner` a multiple of InnerStep().
void MultiplyByUnit(const MmaUnit& unit,
                    MatrixSpan<const uint8_t> a,
                    MatrixSpan<const uint8_t> b,
                    size_t rows_a,
                    size_t rows_b,
                    size_t inner,
                    MatrixSpan<float> out);

}  // namespace numsim
