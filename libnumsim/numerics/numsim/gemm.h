// The header to include for GEMMs of codes or floats under a named accumulation mode. Operands
// whose sizes do not fit each other or their scales make every call throw numsim::Error.
#pragma once

#include "numsim/arith/accumulation_mode.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize.h"
