// The header to include for GEMMs of codes or floats under a named accumulation mode.
#pragma once

#include "numsim/arith/accumulation_mode.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize.h"
