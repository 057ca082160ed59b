// The device's tensor cores by their own instructions, one at a time: for probes, not for speed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "numsim/backend/device.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

// One instruction. Its accumulators are float32, or int32 for int8.
struct MmaUnit {
  std::string_view name;         // "mma.sync.m16n8k32 e4m3fn x e5m2"
  FormatSpec a, b;               // tf32 operands are float32 values on that grid
  bool warpgroup;                // wgmma, which Hopper alone has; else mma.sync
  int least_compute_capability;  // 10 major + minor

  // Products of one instruction: 32 bytes of each operand.
  size_t InnerStep() const { return 32 / static_cast<size_t>(a.StorageBytes()); }
};
std::span<const MmaUnit> MmaUnits();

// Why the device cannot run it, or this build has no code for it; empty if it can.
std::string MmaUnavailable(const MmaUnit& unit);

// out(i, j) = the unit's sum over k of a(i, k) b(j, k): rows_a x rows_b, row-major. Operands are
// codes, rows x inner, row-major, without gaps. The accumulator begins as zero and passes from
// instruction to instruction, k ascending. Sums of int8 are given as float32, exact below 2^24.
// Requires MmaUnavailable(unit) empty, a unit of MmaUnits(), inner a multiple of InnerStep().
void MultiplyByUnit(const MmaUnit& unit,
                    DeviceSpan<const uint8_t> a,
                    DeviceSpan<const uint8_t> b,
                    size_t rows_a,
                    size_t rows_b,
                    size_t inner,
                    DeviceSpan<float> out,
                    DeviceStream& stream);

}  // namespace numsim
