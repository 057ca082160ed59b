// The sums of tensor cores, for accumulation_mode.cc. accumulation_mode.h defines each kind. Each
// function returns the bits of a float32. Requires vectors of equal size and mode.chunk >= 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/arith/accumulation_mode.h"

namespace numsim {

uint32_t AlignedSum(const AccumulationMode& mode,
                    const DotOperand& a,
                    const DotOperand& b) noexcept;
uint32_t AlignedDownSum(const AccumulationMode& mode,
                        const DotOperand& a,
                        const DotOperand& b) noexcept;
uint32_t BlockScaledSum(const AccumulationMode& mode,
                        const DotOperand& a,
                        const DotOperand& b) noexcept;
uint32_t ExactChunkSum(const AccumulationMode& mode,
                       const DotOperand& a,
                       const DotOperand& b) noexcept;
uint32_t FlushedPairSum(const AccumulationMode& mode,
                        const DotOperand& a,
                        const DotOperand& b) noexcept;

}  // namespace numsim
