// Matrices to codes with scales, per tensor, row, column, block or tile: what a user of quantisation
// includes. Quantize of quantized_matrix.h makes the scales too; quantize.h takes them.
#pragma once

#include "numsim/cast.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"
