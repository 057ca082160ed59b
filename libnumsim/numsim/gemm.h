// Matrix products of codes or floats under a named accumulation mode: what a user of Gemm includes.
#pragma once

#include "numsim/arith/accumulation_mode.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize.h"
