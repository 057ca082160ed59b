// Tries accumulation modes on the results of a tensor core.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/mma_probe/tensor_core.h"

namespace numsim {

// Returns true if dot product d of the block has the same bits in `mode` as in
// the tensor core's answer. All NaNs are equal.
bool Agrees(const AccumulationMode& mode,
            const TensorCore& unit,
            const ProbeAnswer& answer,
            size_t d);

// Returns every accumulation mode that agrees with all `answers` and that inner dimensions up to
// unit.inner_most can distinguish from others. The most specific names come first: modes that
// AccumulationModeTable() lists for these operands, then modes without parameters, then fewer
// fraction bits before more. If no mode agrees, sets `closest` (unless null) to the mode that
// agrees most often on a sample.
//
// The candidates are exact, fp64, and the formats fp32, tf32, bf16 and fp16, fused and unfused;
// fp32-chunked:N for any N; trunc:F,CHUNK[,PROMOTE] for F <= 40, CHUNK <= 64 or a multiple of 16,
// and any PROMOTE, also by byte pairs; and the steps of AMD's matrix cores. If both exact and fp32
// fit, nothing was rounded, and only the modes with a name are tried.
std::vector<AccumulationMode> FittingModes(const TensorCore& unit,
                                           const std::vector<ProbeAnswer>& answers,
                                           AccumulationMode* closest);

// Returns the accumulation mode with every name that AccumulationModeTable() has for it, as in
// "trunc:13,32 (hopper-fp8-fast)".
std::string ModeWithNames(const AccumulationMode& mode);

}  // namespace numsim
