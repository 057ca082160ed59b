// The header to include for quantisation: it encodes matrices as codes with one scale per tensor,
// row, column, block or tile. Quantize in quantize/quantized_matrix.h also computes the scales;
// Quantize in quantize/quantize.h takes them from the caller, and quantize/given_scales.h codes and
// scales that somebody else has made. Arrays whose sizes do not fit the shape or the layout make
// every call throw numsim::Error. docs/examples/quantize.cc is a program.
#pragma once

#include "numsim/cast.h"
#include "numsim/quantize/given_scales.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/quantize/scale_layout.h"
