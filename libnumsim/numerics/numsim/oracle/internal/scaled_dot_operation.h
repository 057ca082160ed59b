// Dot products of operands with block scales.
#pragma once

#include <memory>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/oracle/internal/operation_row.h"

namespace numsim {

// Requires a mode other than library.
std::unique_ptr<Operation> MakeScaledDot(const OperationInfo& info,
                                         const ResolvedRequest& request,
                                         const AccumulationMode& mode);

}  // namespace numsim
