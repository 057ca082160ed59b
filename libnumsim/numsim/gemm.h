// Matrix products of codes or floats under a named rule of accumulation: what a user of Gemm includes.
#pragma once

#include "numsim/arith/accumulator.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize.h"
