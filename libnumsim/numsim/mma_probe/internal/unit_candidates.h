// Accumulation modes, tried on what a tensor core gave.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/mma_probe/tensor_core.h"

namespace numsim {

// Whether the rule's dot product d of the block has the unit's bits. NaN equals NaN.
bool Agrees(const AccumulationMode& rule,
            const TensorCore& unit,
            const ProbeAnswer& answer,
            size_t d);

// Every rule that can be told from others by inner dimensions up to unit.inner_most and agrees on
// all `answers`, the most telling name first: rows of the table for these operands, rules without
// parameters, then fewer fraction bits before more. `closest` is set to the rule that agrees most
// often on a sample where there is none.
//
// Tried are exact, fp64, fp32, the small formats, each also unfused, fp32-chunked:N for any N,
// trunc:F,CHUNK[,PROMOTE] for F <= 40, CHUNK <= 64 or a multiple of 16, any PROMOTE, also by byte
// pairs, and the steps of AMD's units. Where exact and fp32 fit, nothing was rounded, and only
// named rules are tried.
std::vector<AccumulationMode> FittingRules(const TensorCore& unit,
                                           const std::vector<ProbeAnswer>& answers,
                                           AccumulationMode* closest);

// "trunc:13,32 (hopper-fp8-fast)": the rule and every name that the table has for it.
std::string RuleWithNames(const AccumulationMode& rule);

}  // namespace numsim
