// Float32 sums of parts of the inner dimension, and their store under an epilogue.
#pragma once

#include <span>

#include "numsim/gemm/epilogue.h"
#include "numsim/gemm/internal/gemm_panel.h"

namespace numsim {

// Writes the sums of the part's products under `mode`, without scales, as Gemm does. Requires operands
// on the host whose rows have no gaps.
void SumPart(const GemmOperand& a,
             const GemmOperand& b,
             InnerRange part,
             const AccumulationMode& mode,
             std::span<float> sums);

// Returns what the epilogue makes of a sum and the scales of its row and column. Under kCublasLt the
// operands have a scale per row.
float Scaled(float sum, float a, float b, Epilogue epilogue);

// Stores sums of a segment of the operands: scales each as the epilogue says and, from the second
// segment on, adds it to `out`. Every NaN becomes `nan`.
void StoreSums(std::span<const float> sums,
               const GemmOperand& a,
               const GemmOperand& b,
               size_t segment,
               Epilogue epilogue,
               float nan,
               std::span<float> out);

}  // namespace numsim
